"""How late was a branch at each time, told afterwards from what was written down anyway; pure.

A branch's moves say which commit it showed from when on. The first commit beyond that one was seen at the source at
some moment, and from then on the branch was late, until the next move. So nothing has to be measured for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Stand:
    """From `since` on a branch showed a commit. The next one was seen at `waits_since`; None: there is none.

    Not `known` is where a branch showed nothing, or what somebody else had put there.
    """

    since: datetime
    waits_since: datetime | None = None
    known: bool = True


def worst_lags(
    stands: Sequence[Stand], began: datetime, step: timedelta, steps: int, now: datetime
) -> list[float | None]:
    """The worst lag in seconds of each of some steps of equal length; None where nobody knows it all the time.

    `stands` in order of time, each until the next one, the last until `now`.
    """
    worst: list[float | None] = [None] * steps
    unknown = set[int]()
    for stand, end in zip(stands, [*(after.since for after in stands[1:]), now], strict=False):
        first = max(0, (stand.since - began) // step)
        for n in range(first, steps):
            at = began + n * step
            if at >= end:
                break
            if not stand.known:
                unknown.add(n)
                continue
            late = 0.0
            if stand.waits_since is not None:
                late = max(0.0, (min(end, at + step) - stand.waits_since).total_seconds())
            worst[n] = max(worst[n] or 0.0, late)
    return [None if n in unknown and not value else value for n, value in enumerate(worst)]
