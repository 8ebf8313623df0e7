"""What a first check would take."""

from __future__ import annotations

from core.mirroring.check_cost import Cost, first_check
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
