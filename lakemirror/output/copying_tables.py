"""What is copied for a mirror, as people read it."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType

from lakemirror.output.formatting import UNKNOWN, clock, count, size
from lakemirror.output.missing_words import on_request
from lakemirror.output.rendering import facts, line, table

_LANES = {"small": "small", "large": "large (above 8 MB)"}


def copying(answer: dict[str, Any]) -> RenderableType:
    """Who copies, how fast that may be, and what is copied now."""
    if answer["object_replication"] != "managed":
        asked = on_request(answer.get("bringing"), answer["as_of"])
        stores = line("The stores copy the objects of this mirror (native replication).")
        return Group(stores, line(asked)) if asked else stores
    now = answer["now"]
    figures = (
        ("Limits", _limits(answer["limits"])),
        ("So far", f"{count(answer['copied_objects'], 'object')}, {size(answer['copied_bytes'])}"),
        *(_going(now) if now else ()),
    )
    rows = [(_LANES.get(lane["lane"], lane["lane"]), *(f"{lane[name]:,}" for name in _COUNTS)) for lane in _lanes(now)]
    columns = ("Objects", "Missing", "Waiting", "In flight", "Copied", "Not copied")
    parts: list[RenderableType] = ["", table(columns, rows)] if rows else []
    return Group(line(_head(answer)), facts(figures), *parts, "", line(f"As of {clock(answer['as_of'])} UTC"))


_COUNTS = ("lacking", "waiting", "in_flight", "copied", "failed")


def _head(answer: dict[str, Any]) -> str:
    if answer["paused"]:
        return "Copying is paused."
    return "LakeMirror is copying." if answer["now"] else "Nothing is being copied."


def _lanes(now: dict[str, Any] | None) -> list[dict[str, Any]]:
    return now["lanes"] if now else []


def _going(now: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    objects, passing = now["objects_per_second"], now["bytes_per_second"]
    pace = f"{objects:,.1f} objects/s" if objects else UNKNOWN
    pace += f", {size(round(passing))}/s" if passing else ""
    left = f"{now['left']:,} of {count(now['lacking'], 'object')}, {now['in_flight']:,} in flight"
    return (("Left", left), ("Pace", pace), ("Done", f"{clock(now['eta'])} UTC" if now["eta"] else UNKNOWN))


def _limits(limits: dict[str, Any]) -> str:
    parts = [f"{count(limits['workers'], 'object')} at once"]
    if limits["bytes_per_second"]:
        parts.append(f"{size(limits['bytes_per_second'])}/s")
    if limits["objects_per_second"]:
        parts.append(f"{count(limits['objects_per_second'], 'object')}/s")
    return ", ".join(parts)
