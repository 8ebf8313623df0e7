"""What a page says of a pause, and the form by which its reason and end are changed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import template
from django.template import Context
from django.urls import reverse

from core.pauses import Pause
from web.pauses import LENGTHS

register = template.Library()


@register.inclusion_tag("_pause.html", takes_context=True)
def pause_terms(context: Context, view: str, key: object, pause: Pause, now: datetime, may: bool) -> dict[str, Any]:
    """The pause of what `view` pauses by its `key`; with the form for who `may`."""
    return {
        "request": context["request"],
        "action": reverse(view, args=[key]),
        "pause": pause,
        "too_long": pause.is_overdue(now),
        "lengths": LENGTHS,
        "now": now,
        "may": may,
    }
