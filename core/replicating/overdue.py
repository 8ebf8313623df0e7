"""When the comparing of a rule's places takes longer than it should. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from core.mirroring.rpo import in_words

GRACE = timedelta(hours=1)
FIRST = timedelta(days=1)
"""So long the first comparison may take: nobody knows yet how much there is."""


def comparison_overdue(
    now: datetime,
    *,
    created_at: datetime,
    began_at: datetime | None,
    ended_at: datetime | None,
    going_since: datetime | None,
    every: timedelta,
) -> str:
    """Why the comparing is late, "" while it is not. `every`: so often one begins; `began_at`, `ended_at`: of the last
    one that came to its end, None if none has; `going_since`: of the one at hand, which may take twice as long as that
    did, and longer by `every` and an hour."""
    if ended_at is None or began_at is None:
        late = now - created_at >= FIRST
        return f"the first comparison has not ended in {in_words((now - created_at).total_seconds())}" if late else ""
    if going_since is not None:
        late = now - going_since >= every + 2 * abs(ended_at - began_at) + GRACE
    else:
        late = now - ended_at >= every + GRACE
    last = in_words((now - ended_at).total_seconds())
    return f"the places were last compared {last} ago, not every {in_words(every.total_seconds())}" if late else ""
