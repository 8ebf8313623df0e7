"""Answers about sweeps, as people read them."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType

from lakemirror.output.formatting import UNKNOWN, clock, count, size
from lakemirror.output.rendering import facts, line, listed, table

_COLUMNS = ("Sweep", "State", "Began", "Objects", "Nobody needs", "For a week", "Deleted", "Why")


def sweep_list(page: dict[str, Any]) -> RenderableType:
    """Sweeps with what each found, and what became of that."""
    rows = [_row(sweep) for sweep in page["results"]]
    return listed(_COLUMNS, rows, none="No sweep was made yet.", more=page["pagination"]["has_more"])


def sweep_row(sweep: dict[str, Any]) -> RenderableType:
    """One sweep in a line, as it is after somebody has decided about it."""
    return table(_COLUMNS, [_row(sweep)])


def sweep_detail(sweep: dict[str, Any]) -> RenderableType:
    """A sweep with the beginning of its list."""
    told = facts(
        [
            ("State", sweep["state"]),
            ("Why", sweep["reason"] or UNKNOWN),
            ("Began", clock(sweep["began_at"])),
            ("Objects", f"{sweep['listed']:,}, {size(sweep['listed_bytes'])}"),
            ("Nobody needs", f"{sweep['found']:,}, {size(sweep['found_bytes'])}"),
            ("For a week", f"{sweep['due']:,}, {size(sweep['due_bytes'])}"),
            ("Deleted", f"{sweep['deleted']:,}, {size(sweep['deleted_bytes'])}"),
            ("Kept after all", f"{sweep['spared']:,}"),
            ("Kept by a lock", f"{sweep['locked']:,}"),
            ("Refused", f"{sweep['refused']:,}"),
            ("Expires", clock(sweep["expires_at"])),
            ("Decided by", sweep["decided_by"] or UNKNOWN),
        ]
    )
    rows = [(one["address"], size(one["size"]), clock(one["found_at"])) for one in sweep["objects"]]
    if not rows:
        return told
    left = sweep["due"] - len(rows)
    more = [line(f"and {count(left, 'more object')}: --csv writes all of them")] if left > 0 else []
    return Group(told, line(""), table(("Object", "Size", "Found"), rows), *more)


def _row(sweep: dict[str, Any]) -> tuple[str, ...]:
    return (
        str(sweep["id"]),
        sweep["state"],
        clock(sweep["began_at"]),
        f"{sweep['listed']:,}",
        f"{sweep['found']:,}",
        f"{sweep['due']:,}",
        f"{sweep['deleted']:,}",
        sweep["reason"] or UNKNOWN,
    )
