"""Answers about objects, as people read them."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType

from lakemirror.output.formatting import clock, short, size
from lakemirror.output.rendering import facts, line


def located(answer: dict[str, Any]) -> RenderableType:
    """The region and the address, and what was tried before."""
    commit = short(answer["commit"])
    stale = "" if answer["fresh"] else ", where a mirror was last promoted to: the source could not be asked"
    about = [
        ("Address", answer["address"]),
        ("Size", size(answer["size"])),
        ("Commit", f"{commit}{stale}"),
        ("Readable until", f"{clock(answer['expires_at'])} UTC"),
        *((f"Not {one['region']}", one["why"]) for one in answer["tried"]),
    ]
    return Group(line(f"Readable in {answer['region']}."), "", facts(about), "", line(answer["url"]))
