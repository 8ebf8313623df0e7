"""Passes, as far as they need no database."""

from __future__ import annotations

import random

import pytest

from core.errors import Invalid
from core.replicating.passes import (
    PassState,
    ReportRow,
    Seen,
    Stretch,
    before,
    below,
    check_prefix,
    end_of,
    pack,
    progress_of,
    unpack,
)


def test_rows_come_back_as_they_were() -> None:
    rows = [ReportRow(1, "a\udc80\U0001f600", "copy", 7), ReportRow(8, "=x", "failed", -1, "Internal", "why\n")]
    assert list(unpack(pack(rows))) == rows and list(unpack(pack([]))) == []


@pytest.mark.parametrize("prefix", ["a", "a/", "é", "\x01", "\ue000", "\U0001f600", "k" * 1024, "\U0010ffff"])
def test_every_key_that_begins_with_a_prefix_is_in_a_stretch_below_it(prefix: str) -> None:
    pick = random.Random(prefix)
    letters = ["\x01", "a", "/", "~", "é", "\ue000", "\U0001f600", "\U0010ffff"]
    cuts = sorted({"".join(pick.choices(letters, k=pick.randint(1, 4))).encode() for _ in range(20)})
    stretches = [Stretch(low, high) for low, high in zip([b"", *cuts], [*cuts, None], strict=True)]
    found = below(stretches, prefix)
    room = (1024 - len(prefix.encode())) // 4
    keys = [prefix, prefix + "\U0010ffff" * room]
    keys += [prefix + "".join(pick.choices(letters, k=pick.randint(0, min(5, room)))) for _ in range(100)]
    for key in keys:
        inside = [one for one in found if one.low < key.encode() and (one.high is None or key.encode() <= one.high)]
        assert len(inside) == 1, (key, found)
    assert before(prefix).encode() < prefix.encode()
    assert below(stretches, "") == stretches


def test_what_no_key_begins_with_is_refused() -> None:
    for wrong in ("a\0", "\ud800", "é" * 600):
        with pytest.raises(Invalid):
            check_prefix(wrong)
    assert check_prefix("a b") == "a b"


def test_a_pass_is_completed_only_if_nothing_failed_and_something_was_there() -> None:
    def end(actions: dict[str, list[int]], failed: int = 0, prefix: str = "") -> tuple[PassState, str]:
        return end_of(Seen({"1": actions}, failed, prefix, None))

    assert end({"equal": [1, 1]}) == (PassState.COMPLETED, "")
    assert end({"copy": [4, 1]}, 3) == (PassState.WITH_FAILURES, "3 objects could not be copied")
    assert end({}) == (PassState.NOTHING, "the source has no object")
    assert end({"skip:own": [4, 9]}) == (PassState.NOTHING, "the source has no object")
    assert end({"skip:KeyTooLong": [1, 1]}, 1)[0] is PassState.WITH_FAILURES
    told = end({"skip:newer": [1, 1], "skip:filter": [2, 1]}, prefix="a/")
    why = "2 objects not what the rule copies, 1 object not older than asked"
    assert told == (
        PassState.NOTHING,
        f"the source has no object whose key begins with 'a/' that is to be copied: {why}",
    )


def test_how_far_it_is_and_how_long_it_takes() -> None:
    reading = progress_of(total=1000, read=False, looked_at=250, waiting=50, seconds=25.0, pace=5.0)
    assert reading == (1000, True, 200, 8.0, 75.0) and reading.percent == 20
    copying = progress_of(total=1000, read=True, looked_at=250, waiting=50, seconds=25.0, pace=5.0)
    assert copying == (250, False, 200, 8.0, 10.0)
    assert progress_of(total=None, read=False, looked_at=9, waiting=0, seconds=1.0, pace=None).eta is None
    assert progress_of(total=9, read=True, looked_at=9, waiting=1, seconds=1.0, pace=None).eta is None
    assert progress_of(total=5, read=False, looked_at=9, waiting=0, seconds=1.0, pace=None).total == 9
    done = progress_of(total=None, read=True, looked_at=0, waiting=0, seconds=0.0, pace=None)
    assert (done.total, done.percent, done.eta) == (0, None, 0.0)
