"""Units of an export: every key on which the commits differ, once, and no shared range opened."""

from __future__ import annotations

from itertools import chain, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.exporting.unit_planning import Unit, grouped, holders, part_rows, parts_of, plan_units
from graveler.metarange import RangeRef

Tree = dict[bytes, int]
"""Key to content."""
Range = tuple[tuple[bytes, int], ...]

keys = st.binary(max_size=3)


class Shelf:
    """Ranges by id, which says what they hold; counts what is opened."""

    def __init__(self) -> None:
        self.ranges: dict[str, Range] = {}
        self.opened: list[str] = []

    def put(self, tree: Tree, cuts: frozenset[bytes]) -> list[RangeRef]:
        """A commit; its ranges end before the keys of `cuts`."""
        groups: list[list[tuple[bytes, int]]] = []
        for entry in sorted(tree.items()):
            if not groups or entry[0] in cuts:
                groups.append([])
            groups[-1].append(entry)
        return [self._ref(tuple(group)) for group in groups]

    def _ref(self, members: Range) -> RangeRef:
        self.ranges[repr(members)] = members
        return RangeRef(repr(members), members[0][0], members[-1][0], len(members), 0)

    def open(self, range_id: str) -> Range:
        self.opened.append(range_id)
        return self.ranges[range_id]

    def planned(self, unit: Unit) -> list[bytes]:
        """The keys of a unit on which not all agree."""
        target = dict(self.open(unit.target)) if unit.target else {}
        others = [dict(chain.from_iterable(map(self.open, ids))) for ids in unit.others]
        found = {key for key in chain(target, *others) if unit.holds(key)}
        return sorted(key for key in found if any(tree.get(key) != target.get(key) for tree in others))


@st.composite
def commits(draw: st.DrawFn) -> tuple[list[Tree], list[frozenset[bytes]]]:
    """A target and some others that are alike, and where their ranges are cut: mostly at the same keys."""
    first = draw(st.dictionaries(keys, st.integers(0, 3), max_size=20))
    trees, cuts = [first], [draw(st.frozensets(keys, max_size=6))]
    for _ in range(draw(st.integers(1, 3))):
        changes = draw(st.dictionaries(keys, st.one_of(st.none(), st.integers(0, 3)), max_size=3))
        gone = set() if not first else draw(st.sets(st.sampled_from(sorted(first)), max_size=3))
        tree = {key: value for key, value in first.items() if key not in gone}
        tree |= {key: value for key, value in changes.items() if value is not None}
        trees.append(draw(st.one_of(st.just(tree), st.just({}))))
        cuts.append(draw(st.one_of(st.just(cuts[0]), st.frozensets(keys, max_size=6))))
    return trees, cuts


@given(commits())
@settings(max_examples=150, deadline=None)
def test_the_units_plan_what_brute_force_plans_and_open_no_shared_range(
    drawn: tuple[list[Tree], list[frozenset[bytes]]],
) -> None:
    trees, cuts = drawn
    shelf = Shelf()
    refs = [shelf.put(tree, cut) for tree, cut in zip(trees, cuts, strict=True)]
    units = list(plan_units(refs[0], refs[1:]))
    planned = [key for unit in units for key in shelf.planned(unit)]
    target, *others = trees
    expected = {key for key in chain(*trees) if any(tree.get(key) != target.get(key) for tree in others)}
    assert planned == sorted(expected)
    shared = set.intersection(*({ref.id for ref in one} for one in refs))
    assert not shared & set(shelf.opened)


@given(commits())
@settings(max_examples=40, deadline=None)
def test_units_ascend_without_overlap(drawn: tuple[list[Tree], list[frozenset[bytes]]]) -> None:
    shelf = Shelf()
    refs = [shelf.put(tree, cut) for tree, cut in zip(*drawn, strict=True)]
    units = list(plan_units(refs[0], refs[1:]))
    for before, after in pairwise(units):
        assert before.high is not None and before.low < before.high <= after.low


def ref(name: str, low: str, high: str, count: int = 1) -> RangeRef:
    return RangeRef(name, low.encode(), high.encode(), count, 0)


def test_a_first_export_plans_every_range() -> None:
    target = [ref("A", "a", "c", 10), ref("B", "e", "g", 20)]
    assert list(plan_units(target, [[]])) == [Unit(b"", b"e", "A", ((),)), Unit(b"e", None, "B", ((),))]
    assert [unit.entries for unit in plan_units(target, [[]])] == [10, 20]


def test_the_same_commit_plans_nothing() -> None:
    target = [ref("A", "a", "c"), ref("B", "e", "g")]
    assert list(plan_units(target, [target, target])) == []
    assert list(plan_units([], [[]])) == []


def test_an_emptied_branch_is_one_unit_without_a_range_of_its_own() -> None:
    assert list(plan_units([], [[ref("A", "a", "c"), ref("B", "e", "g")]])) == [Unit(b"", None, "", (("A", "B"),))]


def test_what_lies_beside_a_shared_range_is_read_without_it() -> None:
    kept = ref("K", "e", "g")
    units = list(plan_units([kept], [[ref("A", "a", "c"), kept]]))
    assert units == [Unit(b"", None, "", (("A",),))]


def test_a_range_that_an_attempt_lacks_is_planned_though_the_base_has_it() -> None:
    same = ref("A", "a", "c")
    assert list(plan_units([same], [[same], [ref("X", "b", "z")]])) == [Unit(b"", None, "A", (("A",), ("X",)))]


def test_there_is_always_another_commit() -> None:
    with pytest.raises(ValueError, match="first export"):
        list(plan_units([], []))


@given(st.integers(0, 300), st.integers(1, 30))
@settings(max_examples=40)
def test_parts_are_disjoint_and_complete(rows: int, parts: int) -> None:
    found = [part_rows(rows, part, parts) for part in range(parts)]
    assert [row for start, stop in found for row in range(start, stop)] == list(range(rows))


def test_a_unit_is_cut_by_rows_and_by_bytes_but_never_below_one_row() -> None:
    assert [parts_of(rows, 0) for rows in (0, 1, 5_000, 5_001, 50_000)] == [1, 1, 1, 2, 10]
    assert parts_of(3, 1 << 50) == 3


@given(st.lists(st.integers(0, 100), max_size=30), st.integers(1, 8))
@settings(max_examples=50)
def test_groups_are_neighbours_and_leave_nothing_out(sizes: list[int], tasks: int) -> None:
    groups = grouped(sizes, tasks)
    assert len(groups) <= tasks
    assert [at for start, stop in groups for at in range(start, stop)] == list(range(len(sizes)))
    assert all(start < stop for start, stop in groups)


def test_groups_are_of_about_the_same_size() -> None:
    assert grouped([100, 50, 50, 1, 1, 97], 3) == [(0, 1), (1, 3), (3, 6)]


def test_a_key_is_looked_for_in_the_one_range_that_may_hold_it() -> None:
    target = [ref("A", "a", "c"), ref("B", "e", "g")]
    assert holders(target, [b"a", b"b", b"d", b"f", b"g", b"z"]) == {"A": [b"a", b"b"], "B": [b"f", b"g"]}
