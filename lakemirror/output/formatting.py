"""Figures, times and ids as people read them. Unknown is "—"."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

UNKNOWN = "—"
SHORT_ID = 8


def clean(text: str) -> str:
    """Text from elsewhere with what a terminal would obey made visible."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def moment(text: str | None) -> datetime | None:
    """A moment from RFC 3339."""
    return None if text is None else datetime.fromisoformat(text)


def clock(text: str | None) -> str:
    """A moment in UTC with its date."""
    at = moment(text)
    return UNKNOWN if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def length(seconds: float | None) -> str:
    """A length of time: "6 s", "14 min", "2 h", "3 days"."""
    if seconds is None:
        return UNKNOWN
    if seconds < 1:
        return "< 1 s" if seconds > 0 else "0"
    for size, unit in ((86400, "day"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return count(int(seconds // size), unit) if unit == "day" else f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"


def between(earlier: str | None, later: str | None) -> float | None:
    """Seconds from one moment to another; None when one of them isn't known."""
    start, end = moment(earlier), moment(later)
    return None if start is None or end is None else (end - start).total_seconds()


def ago(text: str | None, now: str | None) -> str:
    """How long ago a moment was."""
    seconds = between(text, now)
    return UNKNOWN if seconds is None else "just now" if seconds < 1 else f"{length(seconds)} ago"


def until(text: str | None, now: str | None) -> str:
    """How long until a moment comes."""
    seconds = between(now, text)
    return UNKNOWN if seconds is None else "now" if seconds < 1 else f"in {length(seconds)}"


def count(number: int, one: str, many: str = "") -> str:
    """A count with its noun: "1 commit", "1,204 commits"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size(number: int | None) -> str:
    """Bytes as people say them."""
    if number is None:
        return UNKNOWN
    if number < 1024:
        return count(number, "byte")
    amount = number / 1024
    for unit in ("KB", "MB", "GB"):
        if amount < 1024:
            return f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:,.1f} TB"


def short(commit: str | None) -> str:
    """A commit's id by its first eight characters."""
    return commit[:SHORT_ID] if commit else UNKNOWN


def labels_of(thing: dict[str, Any]) -> str:
    """Labels of a mirror or an export, as they are typed."""
    return ", ".join(f"{key}={value}" if value else key for key, value in sorted(thing["labels"].items()))
