"""How far is another machine's clock off? As far as the Date of its answers tells."""

from __future__ import annotations

from email.utils import parsedate_to_datetime


def seconds_ahead(date: str, asked_at: float, answered_at: float) -> float | None:
    """By how much the clock that wrote a Date header is at least ahead of (negative: behind) our own; None: no date.

    A Date has whole seconds, and was written between two moments of ours: what may be that is no difference.
    """
    try:
        written_at = parsedate_to_datetime(date).timestamp()
    except (TypeError, ValueError):
        return None
    return max(written_at - answered_at, 0.0) + min(written_at + 1 - asked_at, 0.0)
