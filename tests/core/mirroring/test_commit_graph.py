"""Parents first, whatever the order in which commits come."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.mirroring.commit_graph import ParentsFirst, in_circles

Parents = dict[str, tuple[str, ...]]


@st.composite
def histories(draw: st.DrawFn) -> Parents:
    """Commits with their parents, oldest first: lines, merges, octopuses, several roots."""
    parents: Parents = {}
    for number in range(draw(st.integers(1, 30))):
        earlier = st.sampled_from(sorted(parents)) if parents else st.nothing()
        parents[f"c{number:02}"] = tuple(draw(st.lists(earlier, max_size=3, unique=True))) if parents else ()
    return parents


@st.composite
def deliveries(draw: st.DrawFn) -> tuple[Parents, list[list[str]]]:
    """A history, and its commits in some order and in batches."""
    parents = draw(histories())
    order = draw(st.permutations(sorted(parents)))
    cuts = sorted(draw(st.sets(st.integers(1, len(order)))))
    return parents, [order[a:b] for a, b in zip([0, *cuts], [*cuts, len(order)], strict=True)]


def feed_all(parents: Parents, batches: list[list[str]]) -> tuple[ParentsFirst, list[str]]:
    order, placed = ParentsFirst(), []
    for batch in batches:
        named = {parent for commit_id in batch for parent in parents[commit_id]}
        placed += order.feed([(commit_id, parents[commit_id]) for commit_id in batch], named.intersection(placed))
    return order, placed


@given(deliveries())
def test_each_commit_is_placed_once_and_after_its_parents(delivery: tuple[Parents, list[list[str]]]) -> None:
    parents, batches = delivery
    order, placed = feed_all(parents, batches)
    assert sorted(placed) == sorted(parents)
    assert order.waiting._lacking == {}
    place = {commit_id: n for n, commit_id in enumerate(placed)}
    assert all(place[parent] < place[child] for child in parents for parent in parents[child])


@given(deliveries(), st.integers(0, 29))
def test_what_lacks_an_ancestor_is_held_back_and_nothing_else(
    delivery: tuple[Parents, list[list[str]]], which: int
) -> None:
    parents, batches = delivery
    lost = sorted(parents)[which % len(parents)]
    held = {lost}
    for child in sorted(parents):
        if held.intersection(parents[child]):
            held.add(child)
    _, placed = feed_all(parents, [[one for one in batch if one != lost] for batch in batches])
    assert set(placed) == parents.keys() - held


@given(histories())
def test_nothing_is_held_when_parents_come_first(parents: Parents) -> None:
    order = ParentsFirst()
    for commit_id in sorted(parents):
        assert order.feed([(commit_id, parents[commit_id])], parents[commit_id]) == [commit_id]


def test_a_circle_is_never_placed() -> None:
    order, placed = feed_all({"a": (), "p": ("q", "a"), "q": ("p",), "r": ("q",)}, [["r", "q"], ["p", "a"]])
    assert placed == ["a"]
    assert len(order.waiting._lacking) == 3


def test_what_descends_from_itself_is_named_whatever_else_is_not_there() -> None:
    parents = {"a": ("lost",), "b": ("a",), "p": ("q", "a"), "q": ("p", "lost"), "r": ("q",), "s": ("s",)}
    assert in_circles(parents) == {"p", "q", "r", "s"}
