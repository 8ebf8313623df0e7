"""The judge of the soak of rules sees what it is there to find, and allows what the documents admit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.rule_fleet import AWAY, FAR, HOME, contents
from tests.rule_fleet.findings import tracebacks
from tests.rule_fleet.journal import Deed, Kind
from tests.rule_fleet.judge import (
    BothWays,
    Heeds,
    Standing,
    Version,
    at_source,
    at_target,
    left_over,
    of_versions,
    unasked,
    unnoted,
)
from tests.rule_fleet.layout import Place, groups
from tests.rule_fleet.traffic import Asked, Traffic, read_traffic, writes_after

ONE, TWO = Place(HOME, "one"), Place(AWAY, "two")
KEY = "k"


def put(number: int, place: Place, began: float, *, sure: bool = True, version: str = "", key: str = KEY) -> Deed:
    return Deed(number, Kind.PUT, "g", place, key, began, began + 0.1, sure=sure, version=version, etag=f"e{number}")


def delete(number: int, place: Place, began: float, hit: int, *, sure: bool = True, version: str = "") -> Deed:
    deed = Deed(number, Kind.DELETE, "g", place, KEY, began, began + 0.1, sure=sure, version=version, hit=hit)
    deed.looked = began - 0.1
    return deed


def told(deeds: list[Deed], final: int | None, traffic: Traffic | None = None, **more: object) -> str:
    case = BothWays(KEY, deeds, final, traffic or Traffic(), **more)  # type: ignore[arg-type]
    return " | ".join(case.problems())


def brought(number: int, bucket: str, at: float, *, status: int = 200) -> Traffic:
    """LakeMirror wrote this there."""
    made = Traffic()
    made.writes[bucket, KEY].append(Asked(at, at + 0.1, number, status))
    return made


def test_the_newest_write_has_to_be_there() -> None:
    deeds = [put(1, ONE, 10.2), put(2, TWO, 12.2)]
    assert told(deeds, 2) == ""
    assert told(deeds, 1).startswith("lost: put 2")
    assert "lost: put 1" in told(deeds, None) and "lost: put 2" in told(deeds, None)
    assert told(deeds, 3) == "k has write 3, which nobody made"


def test_of_one_second_that_of_the_first_region_by_name_is_the_newer_one() -> None:
    deeds = [put(1, ONE, 10.5), put(2, TWO, 10.2)]
    assert AWAY < HOME and told(deeds, 2) == ""
    assert told(deeds, 1).startswith("lost: put 2")
    either = [put(1, ONE, 10.95), put(2, TWO, 10.5)]  # across two seconds
    assert told(either, 1) == told(either, 2) == ""


def test_at_one_place_the_later_write_is_the_newer_one_whatever_the_second() -> None:
    deeds = [put(1, ONE, 10.1), put(2, ONE, 10.5)]
    assert (told(deeds, 2), told(deeds, 1)[:11]) == ("", "lost: put 2")


def test_what_nobody_answered_may_be_there_or_not() -> None:
    deeds = [put(1, ONE, 10), put(2, ONE, 20, sure=False)]
    assert told(deeds, 1) == told(deeds, 2) == ""
    assert told(deeds, None).startswith("lost: put 1")
    assert told([*deeds, delete(3, ONE, 30, hit=2)], None) == ""


def test_a_deletion_means_what_lay_there_and_what_is_older() -> None:
    deeds = [put(1, ONE, 10), put(2, TWO, 20), delete(3, TWO, 30, hit=2)]
    assert told(deeds, None) == ""
    later = [*deeds, put(4, ONE, 25)]
    assert told(later, 4) == ""
    assert told(later, None).startswith("lost: put 4")


def test_what_a_link_had_brought_does_not_come_back_once_it_is_deleted() -> None:
    deeds = [put(1, ONE, 10), delete(2, TWO, 30, hit=1)]
    assert told(deeds, 1, brought(1, "two", 20)).startswith("back: put 1")
    assert told(deeds, None, brought(1, "two", 20)) == ""
    assert told(deeds, 1, brought(1, "two", 20), rejected=40.0) == ""
    assert told(deeds, 1) == "", "nobody had seen it there"
    assert told(deeds, 1, brought(1, "two", 20, status=0)) == "", "nor where the write was not answered"
    assert told(deeds, 1, brought(1, "two", 20), kills=[20.5]) == "", "nor where who wrote it was killed"
    assert told(deeds, 1, brought(1, "two", 20), kills=[40.0]) != ""


def test_what_is_older_than_what_was_deleted_does_not_come_back() -> None:
    deeds = [put(1, ONE, 10), put(2, TWO, 20), delete(3, TWO, 40, hit=2)]
    assert told(deeds, 1, brought(2, "one", 30)).startswith("back: put 1")


def test_of_two_that_were_written_in_one_second_at_one_place_either_may_come_back() -> None:
    deeds = [put(1, ONE, 10.1), put(2, ONE, 10.5), delete(3, TWO, 40, hit=2)]
    assert told(deeds, 1, brought(2, "two", 30)) == ""
    assert told([put(1, ONE, 9.5), *deeds[1:]], 1, brought(2, "two", 30)).startswith("back: put 1")


def test_what_came_between_the_look_and_the_deletion_may_be_what_was_deleted() -> None:
    deeds = [put(1, TWO, 10), put(2, ONE, 20), delete(3, TWO, 30, hit=1)]
    assert told(deeds, None).startswith("lost: put 2")
    assert told(deeds, None, brought(2, "two", 29.95)) == ""


def test_a_write_between_lakemirrors_look_and_its_deletion_may_be_lost_where_no_condition_is_heeded() -> None:
    deeds = [put(1, ONE, 10), delete(2, ONE, 20, hit=1), put(3, TWO, 30.5)]
    traffic = Traffic()
    traffic.heads["two", KEY].append(30.4)
    traffic.deletes["two", KEY].append(Asked(30.7, 30.8, 0, 204))
    assert told(deeds, None, traffic) == ""
    assert told(deeds, None, traffic, heeds={AWAY: Heeds(deletes=True)}).startswith("lost: put 3")
    traffic.heads["two", KEY].append(30.65)
    assert told(deeds, None, traffic).startswith("lost: put 3"), "it had looked since"


def test_the_same_of_a_write_of_lakemirrors() -> None:
    deeds = [put(1, ONE, 10.5), put(2, TWO, 12.5)]
    traffic = brought(1, "two", 12.7)
    traffic.heads["two", KEY].append(12.4)
    assert told(deeds, 1, traffic).startswith("lost: put 2")
    assert told(deeds, 1, traffic, heeds={AWAY: Heeds(puts=False)}) == ""


def test_a_deletion_that_nobody_asked_for_is_seen() -> None:
    traffic = Traffic()
    traffic.deletes["two", KEY].append(Asked(20, 20.1, 0, 204))
    assert told([put(1, ONE, 10)], 1, traffic) == "LakeMirror deleted k in two, which nobody had deleted"
    assert told([put(1, ONE, 10), delete(2, ONE, 15, hit=1), put(3, ONE, 30)], 3, traffic) == ""
    plain = {KEY: [put(1, ONE, 10)]}
    assert list(unasked(plain, traffic, ["two"])) == ["LakeMirror deleted k in two, which nobody had deleted"]
    assert list(unasked(plain, traffic, ["three"])) == []


def test_an_upload_that_lakemirror_has_heard_of_is_not_left_over() -> None:
    assert left_over(10.0, [Asked(10, 10.1, 1, 200)], [])
    assert left_over(10.0, [Asked(20, 20.1, 1, 200, heard=False)], [])
    assert not left_over(10.0, [Asked(10, 10.1, 1, 200, heard=False)], [])
    assert not left_over(10.0, [Asked(10, 10.1, 1, 200)], [11.0])


def test_versions_are_the_same_everywhere_and_none_is_lost() -> None:
    one, marker = Version(KEY, "v1", "e1", 1, 10.0, False), Version(KEY, "v2", "", 0, 20.0, True)
    deeds = {KEY: [put(1, ONE, 10, version="v1"), delete(2, TWO, 20, hit=1, version="v2")]}
    assert list(of_versions(deeds, {"one": [one, marker], "two": [one, marker]})) == []
    [alone] = of_versions(deeds, {"one": [one, marker], "two": [one]})
    assert alone.startswith("one alone has")
    assert "lost: the version of delete 2" in " ".join(of_versions(deeds, {"one": [one], "two": [one]}))
    other = one._replace(id="v3")
    [made] = of_versions(deeds, {"one": [one, marker, other], "two": [one, marker, other]})
    assert made.startswith("nobody made")


def test_a_source_has_what_people_did_last() -> None:
    there = {KEY: Standing(1, "e", "text")}
    assert list(at_source({KEY: [put(1, ONE, 10)]}, there)) == []
    assert list(at_source({KEY: [put(1, ONE, 10), put(2, ONE, 20, sure=False)]}, there)) == []
    assert list(at_source({KEY: [put(1, ONE, 10), put(2, ONE, 20)]}, there)) != []
    assert list(at_source({KEY: [put(1, ONE, 10), delete(2, ONE, 20, hit=1)]}, there)) != []
    assert list(at_source({KEY: [put(1, ONE, 10)]}, {})) != []


@pytest.mark.parametrize(
    "changed",
    [
        {"number": 2},
        {"etag": "x"},
        {"content_type": "x"},
        {"tags": ()},
        {"hold": True},
        {"until": 500.0},
        {"mode": "C"},
    ],
)
def test_a_target_has_all_that_travels(changed: dict[str, object]) -> None:
    one = Standing(1, "e", "text", (("a", "b"),), "GOVERNANCE", 1000.0)
    assert list(at_target({KEY: one}, {KEY: one}, set(), now=100.0)) == []
    assert list(at_target({KEY: one}, {KEY: one._replace(**changed)}, set(), now=100.0)) != []  # type: ignore[arg-type]


def test_a_target_has_nothing_else_and_retention_that_is_over_counts_for_nothing() -> None:
    one = Standing(1, "e", "text")
    assert list(at_target({}, {KEY: one}, set(), now=100.0)) == [f"it has k still: {one}"]
    assert list(at_target({}, {KEY: one}, {KEY}, now=100.0)) == []
    assert list(at_target({KEY: one}, {}, set(), now=100.0)) == ["it lacks k"]
    over = one._replace(mode="GOVERNANCE", until=150.0)
    assert list(at_target({KEY: one}, {KEY: over}, set(), now=100.0)) == []


def test_what_was_written_and_never_noted_may_stay_at_a_target() -> None:
    there = {KEY: Standing(1, "e", "text")}
    assert unnoted(there, brought(1, "two", 20), "two", [20.5]) == {KEY}
    assert unnoted(there, brought(1, "two", 20), "two", []) == unnoted(there, Traffic(), "two", [20.5]) == set()
    assert unnoted(there, brought(2, "two", 20), "two", [20.5]) == set()


def test_contents_say_what_they_are() -> None:
    data = contents.made(7, KEY, 3000)
    assert contents.read(data, KEY) == 7
    for torn in (data[:-1], data[:-8] + bytes(8), contents.made(8, KEY, 3000)[:2000] + data[2000:], b"", b"x\ny"):
        with pytest.raises(contents.Torn):
            contents.read(torn, KEY)
    with pytest.raises(contents.Torn, match="what was written to"):
        contents.read(data, "other")


def test_gates_tell_who_wrote_and_deleted(tmp_path: Path) -> None:
    def line(at: float, method: str, path: str, query: str = "", number: str = "") -> str:
        return json.dumps(
            {"t0": at, "t1": at + 1, "method": method, "path": path, "query": query, "id": number}
            | {"status": 200, "heard": True}
        )

    log = tmp_path / "gate.jsonl"
    lines = [
        line(1, "HEAD", "/b/k"),
        line(2, "PUT", "/b/k", number="5"),
        line(3, "POST", "/b/k", "uploads=", "6"),
        line(4, "PUT", "/b/k", "partNumber=1&uploadId=u"),
        line(5, "POST", "/b/k", "uploadId=u"),
        line(6, "DELETE", "/b/k"),
        line(7, "PUT", "/b/_lakemirror/target.json"),
        line(8, "PUT", "/b/k", "tagging="),
    ]
    log.write_text("\n".join(lines) + "\n")
    found = read_traffic([log, tmp_path / "none"])
    assert found.requests == 8
    assert [(one.began, one.number) for one in found.writes["b", "k"]] == [(2, 5), (5, 6)]
    assert [one.began for one in found.deletes["b", "k"]] == [6]
    assert found.looked_before(("b", "k"), 6) == 1 and set(found.writes) == {("b", "k")}
    assert writes_after([log], 6.5) == ["PUT /b/_lakemirror/target.json? 200", "PUT /b/k?tagging= 200"]
    assert not found.of(["other"]).writes


def test_tracebacks_are_found_by_their_last_line() -> None:
    log = "INFO a\nTraceback (most recent call last):\n  File x\n    y()\nValueError: no\nINFO b\n"
    assert tracebacks(log) == ["ValueError: no"]


def test_the_places_of_a_group_are_apart() -> None:
    for exact in (True, False):
        buckets = [place.bucket for group in groups(exact=exact) for place in group.places]
        assert len(buckets) == len(set(buckets)) == (10 if exact else 8)
        assert {place.region for group in groups(exact=exact) for place in group.places} == {HOME, AWAY, FAR}
