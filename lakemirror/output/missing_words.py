"""What is missing or damaged, in the words that several tables share."""

from __future__ import annotations

import re
from typing import Any

from lakemirror.output.formatting import ago, between, clock, count, length


def short_reason(thing: dict[str, Any]) -> str:
    """Why a thing is in the list: "missing", "size differs", "missing at the source too"."""
    if thing["gone_at_source"]:
        return "missing at the source too"
    why: str = thing["reason"].replace("-", " ")
    return f"{why}, waived" if thing.get("waived") else why


def why_missing(thing: dict[str, Any]) -> str:
    """The same with why replication has not brought it, and whether it was there before."""
    why = short_reason(thing)
    why += f": {cause_words(thing['cause'])}" if thing.get("cause") else ""
    return f"{why} (was complete before)" if thing["damage"] else why


def cause_words(code: str) -> str:
    """Why replication has not brought something, from its code: "no rule", "completed but missing"."""
    return "the store gives no status" if code == "NotTold" else re.sub(r"(?<!^)(?=[A-Z])", " ", code).lower()


def since(at: str | None, now: str) -> str:
    """For how long."""
    return length(between(at, now))


def on_request(told: dict[str, Any] | None, as_of: str) -> str:
    """What LakeMirror copies once, for whom, and until when; "" for nothing. An older server says nothing."""
    if not told:
        return ""
    left = f" ({count(told['missing'], 'object')} left)" if told["missing"] else ""
    chosen = f"copies {count(told['missing'], 'missing object')}" if told["missing"] else ""
    copies = f"copies what is missing{left}" if told["what"] == "all" else chosen
    replaces = f"replaces {count(told['wrong'], 'object')}" if told["wrong"] else ""
    what = " and ".join(filter(None, (copies, replaces)))
    held = " Nothing is copied while the mirror is paused or stopped, or its source frozen." if told["held"] else ""
    if everything := told.get("all"):
        all_ = f"{_who(everything)} asked for all that was missing {_ago_and_end(everything, as_of, 'this ends ')}"
        return f"LakeMirror {what}: {all_}, and {_who(told)} for chosen objects {_ago_and_end(told, as_of)}.{held}"
    last = "asked for by" if told["what"] == "all" and not told["wrong"] else "last asked for by"
    ends = f"ends when it is all there, at the latest {clock(told['ends_at'])} UTC"
    return f"LakeMirror {what}: {last} {_who(told)} {ago(told['asked_at'], as_of)}; {ends}.{held}"


def _who(told: dict[str, Any]) -> str:
    """Who asked."""
    return told["asked_by"] or "somebody"


def _ago_and_end(told: dict[str, Any], as_of: str, ends: str = "") -> str:
    return f"{ago(told['asked_at'], as_of)} ({ends}at the latest {clock(told['ends_at'])} UTC)"
