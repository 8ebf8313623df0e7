"""What forms have in common."""

from __future__ import annotations

import json
from typing import Any

from django import forms

from core.errors import LakeMirrorError


class ServiceForm(forms.Form):
    """A form whose service may refuse what was typed."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, label_suffix="", **more)
        for field in self.fields.values():
            field.widget.attrs.update(autocapitalize="none", autocomplete="off", spellcheck="false")

    def refuse(self, error: LakeMirrorError) -> None:
        """Say why the service did not accept it, beside the field that it names."""
        field = error.field
        self.add_error(field if field in self.fields else None, str(error))


def lines(text: str) -> list[str]:
    """One entry a line, without the empty ones."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def values_seen(text: str) -> dict[str, Any]:
    """What a form was made from, as it came back: only to be compared, never stored."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def shown(value: Any) -> str:
    """A setting in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value in (None, "") else ", ".join(str(value).splitlines())
