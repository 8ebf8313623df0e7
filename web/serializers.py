"""What bodies and answers of the API have in common, whatever they are about."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rest_framework import serializers


class Body(serializers.Serializer):
    """The body of a call. Unknown fields are refused, so that a slip of the pen is not silently ignored."""

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        unknown = sorted(set(self.initial_data) - set(self.fields))
        if unknown:
            raise serializers.ValidationError({unknown[0]: f"is not a field here (known: {', '.join(self.fields)})"})
        return attrs


class TrueOrFalse(serializers.BooleanField):
    """JSON's own true and false, and nothing that looks like them."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


def rfc3339(at: datetime | None) -> str | None:
    """A moment as RFC 3339 in UTC, to the millisecond."""
    return None if at is None else at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
