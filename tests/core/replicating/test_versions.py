"""Chains of versions: what a target lacks, and that the steps lead there from wherever somebody was stopped."""

from __future__ import annotations

from itertools import pairwise
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from core.replicating.versions import (
    NULL,
    Chain,
    Plan,
    Step,
    Version,
    doubts,
    fingerprint,
    is_exact_id,
    is_same,
    later_by,
    name_of,
    plan,
)

KEY = "k"


def uid(number: int) -> str:
    return str(UUID(int=number))


def data(number: int, content: str = "", modified: str = "") -> Version:
    content = content or str(number)
    return Version(uid(number), len(content), f"e{content}", modified=modified or f"2026-11-27T12:00:{number:02}.000Z")


def marker(number: int) -> Version:
    return Version(uid(number), marker=True, modified=f"2026-11-27T12:00:{number:02}.000Z")


def carried(there: Chain, steps: list[Step] | tuple[Step, ...], first: int = 1000) -> list[Version]:
    """What a target has after the steps: of an exact one in the order of times."""
    chain = list(there)
    for number, (version, exact, moment) in enumerate(steps, first):
        if exact:
            chain = [one for one in chain if one.id != version.id]
            chain.append(version._replace(modified=moment))
            chain.sort(key=lambda one: one.modified)
        elif version.marker:
            chain.append(Version(f"t{number}", marker=True, modified="9"))
        else:
            own = {"id": f"t{number}", "of": name_of(version), "modified": f"9{number}"}
            chain.append(version._replace(**own))
    return chain


def is_subsequence(source: Chain, there: Chain) -> bool:
    left = iter(there)
    return all(any(is_same(version, other) for other in left) for version in source)


def without_first_markers(chain: Chain) -> list[Version]:
    first = next((at for at, version in enumerate(chain) if not version.marker), len(chain))
    return list(chain[first:])


kinds = st.lists(st.sampled_from(["a", "b", "bb", "", "marker"]), max_size=8)


@st.composite
def chains(draw: st.DrawFn) -> list[Version]:
    """A source's: the same content may come again."""
    numbered = enumerate(draw(kinds), 1)
    return [marker(number) if kind == "marker" else data(number, kind or "x") for number, kind in numbered]


@st.composite
def plain_targets(draw: st.DrawFn) -> list[Version]:
    """What may lie at a plain target: copies, markers and what somebody put there."""
    numbered = enumerate(draw(kinds))
    return [
        Version(f"x{n}", marker=True) if kind == "marker" else Version(f"x{n}", len(kind or "x"), f"e{kind or 'x'}")
        for n, kind in numbered
    ]


@given(chains(), plain_targets(), st.integers(0, 9))
def test_a_plain_target_ends_as_the_source_from_wherever_one_was_stopped(
    source: list[Version], there: list[Version], stopped: int
) -> None:
    steps = list(plan(KEY, source, there, exact=False).steps)
    begun = carried(there, steps[:stopped])
    rest = list(plan(KEY, source, begun, exact=False).steps)
    assert len(rest) <= len(steps[stopped:])
    after = carried(begun, rest, 2000)
    assert not plan(KEY, source, after, exact=False).lacks
    assert after[: len(there)] == there
    if not source:
        assert after == there
        return
    assert is_subsequence(without_first_markers(source), after)
    if after:
        assert is_same(source[-1], after[-1])
    else:
        assert all(version.marker for version in source)


@given(chains(), st.integers(0, 8))
def test_an_empty_plain_target_gets_as_many_in_the_same_order_and_no_marker_twice(
    source: list[Version], had: int
) -> None:
    there = carried([], [Step(version) for version in without_first_markers(source)[:had]])
    after = carried(there, plan(KEY, source, there, exact=False).steps, 2000)
    shown = without_first_markers(source)
    assert len(after) == len(shown)
    assert all(is_same(version, other) for version, other in zip(shown, after, strict=True))


@given(chains(), st.data())
def test_an_exact_target_gets_what_it_lacks_and_nothing_twice(source: list[Version], draw: st.DataObject) -> None:
    has = draw.draw(st.sets(st.sampled_from(range(len(source))))) if source else set()
    there = [version for at, version in enumerate(source) if at in has]
    steps = list(plan(KEY, source, there, exact=True).steps)
    assert {step.version.id for step in steps} == {one.id for one in source} - {one.id for one in there}
    stopped = draw.draw(st.integers(0, len(steps)))
    begun = carried(there, steps[:stopped])
    after = carried(begun, plan(KEY, source, begun, exact=True).steps)
    assert [version.id for version in after] == [version.id for version in source]
    assert not plan(KEY, source, after, exact=True).lacks


@given(chains(), st.booleans(), st.sampled_from(["a", "marker"]))
def test_what_somebody_puts_above_an_exact_targets_latest_is_hidden_again_and_stays(
    source: list[Version], markers: bool, foreign: str
) -> None:
    hides = Version("f", marker=True, modified="8") if foreign == "marker" else Version("f", 7, "theirs", modified="8")
    there = [*source, hides]
    after = carried(there, plan(KEY, source, there, exact=True, markers=markers).steps)
    assert after[: len(there)] == there
    assert not plan(KEY, source, after, exact=True, markers=markers).lacks
    if source and not source[-1].marker:
        assert name_of(source[-1]) == after[-1].of


@given(chains(), plain_targets())
def test_without_markers_none_is_made_and_every_version_is_there(source: list[Version], there: list[Version]) -> None:
    steps = plan(KEY, source, there, exact=False, markers=False).steps
    assert not any(step.version.marker for step in steps)
    after = carried(there, steps)
    assert is_subsequence([version for version in source if not version.marker], after)
    assert not plan(KEY, source, after, exact=False, markers=False).lacks
    if source and not source[-1].marker:
        assert is_same(source[-1], after[-1])


@given(chains(), st.data())
def test_what_cannot_be_copied_holds_up_nothing_and_nothing_is_copied_again_for_it(
    source: list[Version], draw: st.DataObject
) -> None:
    but = draw.draw(st.sets(st.sampled_from([version.id for version in source]))) if source else set()
    after = carried([], plan(KEY, source, [], exact=False, but=but).steps)
    assert not plan(KEY, source, after, exact=False, but=but).lacks
    left = [version for version in source if version.id not in but]
    assert is_subsequence(without_first_markers(left), after)


def test_the_same_content_again_is_another_version() -> None:
    source = [data(1, "a"), data(2, "a")]
    there = carried([], [Step(source[0])])
    assert plan(KEY, source, there, exact=False).steps == [Step(source[1])]


def test_a_version_that_is_missing_in_the_middle_follows_with_all_after_it() -> None:
    source = [data(1), data(2), data(3)]
    there = carried([], [Step(source[0]), Step(source[2])])
    assert [step.version for step in plan(KEY, source, there, exact=False).steps] == source[1:]


def test_a_marker_that_the_source_took_away_no_longer_hides_the_object() -> None:
    one = data(1)
    for exact in (False, True):
        there = [one, marker(2)]
        steps = plan(KEY, [one], there, exact=exact).steps
        assert steps == (Step(one),) or steps == [Step(one)]


def test_markers_alone_hide_what_the_target_has_and_are_not_made_where_nothing_is() -> None:
    source = [marker(1), marker(2)]
    assert not plan(KEY, source, [], exact=False).lacks
    assert plan(KEY, source, [data(9)], exact=False).steps == [Step(source[1])]
    assert [step.version for step in plan(KEY, source, [], exact=True).steps] == source


def test_other_bytes_under_one_id_are_a_conflict_and_the_others_go_on() -> None:
    source = [data(1, "a"), data(2, "b")]
    made = plan(KEY, source, [source[0]._replace(etag="other")], exact=True)
    assert made.conflicts == [source[0]] and [step.version for step in made.steps] == [source[1]]
    assert plan(KEY, [marker(1)], [data(1)], exact=True).conflicts == [marker(1)]
    assert made.lacks and made.bytes == 1


def test_ids_that_an_exact_target_does_not_take_make_it_a_plain_one() -> None:
    odd = Version("3/L4kqtJlcpXroDTDmJ+rmSpXd3dIbrHY", 1, "e")
    assert plan(KEY, [odd], [], exact=True).steps == [Step(odd)]
    assert is_exact_id(NULL) and is_exact_id(uid(7)) and not is_exact_id(uid(10).replace("-", ""))


def test_a_directory_object_of_which_one_version_is_kept_has_the_latest_and_is_never_deleted() -> None:
    there = [Version(NULL, 1, "ea")]
    for exact in (False, True):
        assert not plan("a/", [data(1, "b"), data(2, "a")], there, exact=exact).lacks
        assert plan("a/", [data(1, "a"), data(2, "b")], there, exact=exact).steps == [
            Step(data(2, "b"), False, data(2).modified)
        ]
        assert plan("a/", [data(1, "a"), marker(2)], there, exact=exact) == Plan(unhidable=True)
    new = Version(NULL, 2, "ebb", modified="2026-11-27T12:00:09Z")
    assert plan("a/", [new], there, exact=True).steps == [Step(new, True, new.modified)]


def test_a_copy_is_known_by_its_name_where_its_etag_says_nothing() -> None:
    source = [data(1, "a"), data(2, "b")]
    there = [Version("t1", 1, "kms"), Version("t2", 1, "eb")]
    assert doubts(source, there, exact=False) == [there[0]]
    assert plan(KEY, source, there, exact=False).lacks
    assert not plan(KEY, source, [there[0]._replace(of=uid(1)), there[1]], exact=False).lacks
    assert doubts(source, [*source, Version("f", 1, "eb")], exact=True) == [Version("f", 1, "eb")]
    assert doubts(source, [], exact=True) == doubts(source, source, exact=True) == []


def test_a_copy_of_null_is_named_by_its_content_too() -> None:
    assert name_of(Version(NULL, 1, "a")) != name_of(Version(NULL, 1, "b"))
    assert name_of(data(1)) == uid(1)


def test_versions_of_one_millisecond_are_written_in_their_order() -> None:
    at = "2026-11-27T12:00:00.123Z"
    source = [data(number, modified=at) for number in (1, 2, 3)]
    moments = [step.moment for step in plan(KEY, source, [], exact=True).steps]
    assert moments == ["2026-11-27T12:00:00.123000Z", "2026-11-27T12:00:00.123001Z", "2026-11-27T12:00:00.123002Z"]
    assert all(one < other for one, other in pairwise(moments))
    assert later_by("2026-11-27T12:00:00Z", 1) == "2026-11-27T12:00:00.000001Z"
    assert later_by("2026-11-27T12:00:00.123456Z", 1) == "2026-11-27T12:00:00.123456Z"
    assert later_by("", 1) == ""


def test_a_fingerprint_tells_every_change() -> None:
    one, two = [data(1, "a")], [data(1, "a"), data(2, "a")]
    assert len({fingerprint(chain) for chain in ([], one, two, two[1:], [*one, marker(2)])}) == 5
