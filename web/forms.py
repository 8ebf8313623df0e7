"""What forms have in common."""

from __future__ import annotations

from typing import Any


def shown(value: Any) -> str:
    """A setting in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value in (None, "") else ", ".join(str(value).splitlines())
