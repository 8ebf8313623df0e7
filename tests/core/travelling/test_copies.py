"""Which versions at a target stand for which of the source's."""

from __future__ import annotations

from uuid import UUID

from core.replicating.versions import NULL, Version
from core.travelling.copies import copies, digest_of

A, B, C, D = (str(UUID(int=number)) for number in range(1, 5))
ONE, TWO = (Version(A, 1, "e1"), Version(B, 1, "e2"))


def told(*args: object, **more: object) -> list[tuple[str, str]]:
    return [(pair.own.id, pair.there.id) for pair in copies("a", *args, **{"exact": False} | more)]  # type: ignore[arg-type]


def test_at_an_exact_target_ids_decide() -> None:
    there = [Version(B, 1, "e2"), Version(A, 1, "e1")]
    assert told([ONE, TWO], there, exact=True) == [(A, A), (B, B)]


def test_what_was_written_again_on_top_stands_for_it_too() -> None:
    there = [ONE, TWO, Version(C, 3, "theirs"), Version(D, 1, "e2", of=B)]
    assert told([ONE, TWO], there, exact=True) == [(A, A), (B, B), (B, D)]
    assert told([ONE, TWO], [*there[:3], Version(D, 1, "e2")], exact=True) == [(A, A), (B, B)]  # somebody's


def test_at_a_plain_target_a_copy_is_of_what_it_says() -> None:
    same = [Version("1", 1, "e"), Version("2", 1, "e"), Version("3", 1, "e")]
    there = [Version(f"c{one.id}", 1, "e", of=one.id) for one in same]
    assert told(same, there) == [("1", "c1"), ("2", "c2"), ("3", "c3")]
    assert told(same[1:], there) == [("2", "c2"), ("3", "c3")]
    assert told(same, there, but={"2"}) == [("1", "c1"), ("3", "c3")]


def test_what_says_nothing_is_told_by_its_place() -> None:
    source = [Version("1", 1, "e"), Version("m", marker=True), Version("2", 1, "e")]
    there = [Version("x", 1, "e"), Version("y", marker=True), Version("z", 1, "e")]
    assert told(source, there) == [("1", "x"), ("2", "z")]


def test_each_copy_stands_for_one_version() -> None:
    source = [Version("1", 1, "e"), Version("2", 1, "e")]
    assert told(source, [Version("c", 1, "e", of="2"), Version("d", 1, "e", of="2")]) == [("1", "c"), ("2", "d")]
    assert told(source, [Version("c", 1, "e", of="2")]) == [("2", "c")]


def test_what_readers_see_stands_for_the_latest_unless_it_is_to_be_purged() -> None:
    source, gone = [Version("1", 1, "e")], Version("d", 1, "e", of="2")
    there = [Version("c", 1, "e", of="1"), gone]
    assert told(source, there) == [("1", "c"), ("1", "d")]
    assert told(source, there, purges=True) == [("1", "c")]


def test_what_was_written_without_versioning_is_named_with_its_etag() -> None:
    source = [Version(NULL, 1, "e"), Version("2", 1, "f")]
    assert told(source, [Version("c", 1, "e", of="null e"), Version("d", 1, "f", of="2")]) == [(NULL, "c"), ("2", "d")]


def test_a_digest_is_another_one_when_a_version_is_described_otherwise() -> None:
    assert digest_of({"1": "x", "2": "y"}) == digest_of({"2": "y", "1": "x"}) != digest_of({"1": "x", "2": "z"})
    assert len(digest_of({})) == 32
