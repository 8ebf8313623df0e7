"""When do several mirrors wait for one and the same reason: nothing arrives any more?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from core.installations.stopped_replication import Waits, find_stops, stop_phrase, stop_remedy

PAIR, OTHER = ("us-east-1", "eu-west-1"), ("us-east-1", "ap-southeast-2")
AT = datetime(2026, 11, 25, 14, 2, 30, tzinfo=UTC)


def waits(mirror: str, pair: tuple[str, str] = PAIR, *, minutes: float = 0) -> Waits:
    return Waits(mirror, pair, AT + timedelta(minutes=minutes))


def test_mirrors_that_wait_for_all_that_is_newer_are_one_stop() -> None:
    [stop] = find_stops([waits("c", minutes=1), waits("a"), waits("b", minutes=9)], {PAIR: AT})
    assert (stop.pair, stop.since, stop.mirrors) == (PAIR, AT, ["a", "b", "c"])
    told = "Objects written to us-east-1 since 14:02 UTC have not arrived in eu-west-1: 3 mirrors wait."
    assert str(stop_phrase(stop)) == told
    assert "from us-east-1 to eu-west-1" in stop_remedy(stop)


def test_one_mirror_may_lack_an_object_of_its_own() -> None:
    assert find_stops([waits("a"), waits("b", OTHER)], {}) == []


def test_where_something_newer_arrived_replication_runs() -> None:
    later = {PAIR: AT + timedelta(minutes=5)}
    assert find_stops([waits("a"), waits("b")], later) == []
    assert [stop.mirrors for stop in find_stops([waits("a"), waits("b", minutes=6), waits("c", minutes=7)], later)] == [
        ["b", "c"]
    ]


def test_what_was_on_its_way_may_be_promoted_a_moment_later() -> None:
    assert len(find_stops([waits("a"), waits("b")], {PAIR: AT + timedelta(seconds=30)})) == 1
