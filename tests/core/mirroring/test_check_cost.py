"""What a first check would take."""

from __future__ import annotations

from core.mirroring.check_cost import Cost, first_check, rechecks
from core.mirroring.object_check import Depth


def test_many_objects_are_listed_at_best_and_asked_for_at_worst() -> None:
    best, worst = first_check(metaranges=1, ranges=35, entries=1_000_000, depth=Depth.ETAG, content_sample=1.0)
    assert best == Cost(36, 1000, 0, 11.0)
    assert (worst.gets, worst.lists, worst.heads) == (36, 0, 1_000_000)
    assert worst.seconds is not None
    assert worst.seconds > 500


def test_few_objects_are_asked_for_one_by_one() -> None:
    best, worst = first_check(metaranges=1, ranges=1, entries=3, depth=Depth.SIZE, content_sample=1.0)
    assert (best.lists, best.heads, worst.heads) == (0, 3, 3)


def test_how_long_reading_takes_nobody_can_tell() -> None:
    best, _ = first_check(metaranges=1, ranges=1, entries=100, depth=Depth.CONTENT, content_sample=0.25)
    assert (best.gets, best.seconds) == (27, None)


def test_a_deeper_setting_says_what_is_checked_and_read_again() -> None:
    found = rechecks(Depth.SIZE, ranges=31, objects=20_000, size=1_000_000, content_sample=0.5)
    assert [(one.depth, one.objects, one.bytes) for one in found] == [
        (Depth.ETAG, 20_000, 0),
        (Depth.CONTENT, 20_000, 500_000),
    ]
    assert (found[0].best, found[0].worst, found[1].best) == (1.2, 12.8, None)
    assert rechecks(Depth.CONTENT, ranges=31, objects=20_000, size=1, content_sample=1.0) == []
