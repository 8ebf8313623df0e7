"""Checks of a preflight, as people read them."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType

from lakemirror.output.rendering import line, table


def check_list(answer: dict[str, Any]) -> RenderableType:
    """Each with what was found and what to do."""
    if not answer["checks"]:
        return line("The settings of this mirror ask for no checks.")
    return table(("Check", "State", "What"), [(one["id"], one["state"], said(one)) for one in answer["checks"]])


def said(check: dict[str, Any]) -> str:
    """What was found, and what to do."""
    return ". ".join(part for part in (check["message"], check["fix"]) if part)
