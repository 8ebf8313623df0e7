"""Fields of the bodies that the API of rules takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from core.errors import Invalid
from core.travelling.describing import check_tags


class Text(serializers.CharField):
    """JSON's own text, as it stands."""

    def __init__(self, **more: Any) -> None:
        super().__init__(trim_whitespace=False, **more)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise serializers.ValidationError("must be text")
        return super().to_internal_value(data)


class WholeNumber(serializers.IntegerField):
    """JSON's own whole number."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            raise serializers.ValidationError("must be a whole number")
        return data


class Tags(serializers.DictField):
    """Tags of objects, by their keys. Which there may be says the service."""

    def __init__(self, **more: Any) -> None:
        super().__init__(child=serializers.JSONField(), **more)

    def to_internal_value(self, data: Any) -> dict[str, str]:
        if not isinstance(data, Mapping):
            raise serializers.ValidationError('must be an object, like {"team": "sales"}')
        try:
            return check_tags(data)
        except Invalid as error:
            raise serializers.ValidationError(str(error)) from error
