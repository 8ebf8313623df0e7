"""A pause as the API takes and tells it, and as a form of a page says it; the same for mirrors and exports."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from rest_framework import serializers

from core.errors import Invalid
from core.pauses import LONGEST, LONGEST_REASON, Pause
from db import clock
from web.schemas import text_or_null, time_or_null
from web.serializers import Body, rfc3339

SHORTEST = 60
LENGTHS = {
    "": "As it is",
    "none": "No end",
    "3600": "1 hour from now",
    "14400": "4 hours from now",
    "86400": "1 day from now",
    "259200": "3 days from now",
    "604800": "7 days from now",
}
"""What a form offers as the end of a pause, in words."""


class PauseTerms(Body):
    """The body: why, and until when it is meant, by a time or by how long from now. What is not said of a pause that
    goes on already stays. It never ends by itself."""

    reason = serializers.CharField(required=False, allow_blank=True, max_length=LONGEST_REASON)
    until = serializers.DateTimeField(required=False, allow_null=True, help_text="null: no end")
    for_seconds = serializers.IntegerField(
        required=False, min_value=SHORTEST, max_value=int(LONGEST.total_seconds()), help_text="instead of `until`"
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "until" in attrs and "for_seconds" in attrs:
            raise serializers.ValidationError({"for_seconds": "says the same as 'until': give one of them"})
        return super().validate(attrs)


class PauseAnswer(serializers.Serializer):
    """What is known of a pause; all null where there is none."""

    pause_reason = text_or_null()
    paused_until = serializers.DateTimeField(
        allow_null=True, help_text="when the pause was meant to end: it goes on until it is resumed"
    )
    paused_at = time_or_null()
    paused_by = text_or_null()


def stated_in(data: Any) -> dict[str, Any]:
    """What the body of a call says of a pause, by the columns of core.pauses. Raises Invalid, ValidationError."""
    if not isinstance(data or {}, Mapping):
        raise Invalid("expected a JSON object")
    body = PauseTerms(data=data or {})
    body.is_valid(raise_exception=True)
    given = body.validated_data
    stated = {"pause_reason": given["reason"].strip()} if "reason" in given else {}
    if "for_seconds" in given:
        return stated | {"paused_until": clock.now() + timedelta(seconds=given["for_seconds"])}
    return stated | ({"paused_until": given["until"]} if "until" in given else {})


def stated_by_form(post: Mapping[str, str]) -> dict[str, Any]:
    """The same of a form: `reason`, and `for` by LENGTHS or `until` as browsers send a time, in UTC. Raises Invalid."""
    length, until = post.get("for", ""), post.get("until", "").strip()
    if length not in LENGTHS:
        raise Invalid(f"'{length[:40]}' is no end of a pause", field="for")
    stated: dict[str, Any] = {"pause_reason": post["reason"].strip()} if "reason" in post else {}
    if until:
        return stated | {"paused_until": _moment(until)}
    if length == "none":
        return stated | {"paused_until": None}
    return stated | ({"paused_until": clock.now() + timedelta(seconds=int(length))} if length else {})


def pause_json(pause: Pause | None) -> dict[str, Any]:
    """What is known of a pause, None where there is none."""
    return {
        "pause_reason": (pause and pause.reason) or None,
        "paused_until": rfc3339(pause.until) if pause else None,
        "paused_at": rfc3339(pause.at) if pause else None,
        "paused_by": (pause and pause.by) or None,
    }


def _moment(typed: str) -> datetime:
    try:
        return datetime.strptime(typed, "%Y-%m-%dT%H:%M").replace(tzinfo=UTC)
    except ValueError:
        raise Invalid(f"'{typed[:40]}' is no time", field="until", hint="Write 2026-01-31T22:00, in UTC") from None
