"""Labels as the API takes and tells them, and as a list is narrowed by them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema_field
from rest_framework import serializers

from core import labels

LABEL = OpenApiParameter(
    "label", str, many=True, description="only those with this label, `key=value` or `key`; all of several"
)


@extend_schema_field({"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": labels.MOST})
class Labels(serializers.Field):
    """All labels of something: an object of texts. What is not in it is removed. Raises Invalid."""

    def to_internal_value(self, data: Any) -> dict[str, str]:
        if not isinstance(data, dict):
            raise serializers.ValidationError('must be an object of texts, like {"team": "sales"}')
        return labels.of(data)

    def to_representation(self, value: Any) -> Any:
        return value


def wanted_labels(given: Iterable[str]) -> list[str]:
    """The labels that a query asks for, each once; those that mean nothing find nothing."""
    return list(dict.fromkeys(text.strip() for text in given if text.strip()))
