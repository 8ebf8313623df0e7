"""What an event tells of before and after, as text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from audit.models import AuditEvent


def changes_of(event: AuditEvent, leave_out: Sequence[str] = ()) -> list[tuple[str, str, str]]:
    """What an event tells of before and after: field, before, after."""
    before, after = event.before or {}, event.after or {}
    fields = [name for name in dict.fromkeys([*before, *after]) if name not in leave_out]
    changes = [(name.replace("_", " "), _shown(before, name), _shown(after, name)) for name in fields]
    return [change for change in changes if change[1] or change[2]]


def _shown(values: Mapping[str, Any], name: str) -> str:
    """A value as text, short enough for a row."""
    if name not in values or values[name] == "":
        return ""
    value = values[name]
    if value is None:
        return "none"
    return (value if isinstance(value, str) else json.dumps(value))[:200]
