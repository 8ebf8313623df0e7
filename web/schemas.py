"""The shapes that the API's answers have in common, for its document. What may be unknown is null then, and there."""

from __future__ import annotations

from functools import cache
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from core.installations.preflight import Check
from web.openapi import Pagination


def text_or_null() -> serializers.CharField:
    """Text, or null where there is none."""
    return serializers.CharField(allow_null=True)


def time_or_null() -> serializers.DateTimeField:
    """A moment in UTC, or null where nobody knows, or it has not come."""
    return serializers.DateTimeField(allow_null=True)


def number_or_null() -> serializers.FloatField:
    """A number, or null where nobody knows."""
    return serializers.FloatField(allow_null=True)


def count_or_null() -> serializers.IntegerField:
    """How many, or null where nobody knows."""
    return serializers.IntegerField(allow_null=True)


def many_texts() -> serializers.ListField:
    """A list of texts."""
    return serializers.ListField(child=serializers.CharField())


def page_with(of: type[serializers.Serializer], **more: serializers.Field) -> type[serializers.Serializer]:
    """A page of such answers, with more beside them."""
    name = of.__name__.removesuffix("Answer") + "PageAnswer"
    fields = {"pagination": Pagination(), "as_of": serializers.DateTimeField()} | more | {"results": of(many=True)}
    return type(name, (serializers.Serializer,), fields)


page_answer = cache(page_with)
"""A page of such answers alone: one shape, wherever it is given."""


class ToldAnswer(serializers.Serializer):
    """What is done now."""

    message = serializers.CharField()


class JobTakenAnswer(ToldAnswer):
    """What is done now, and where the job that does it can be followed."""

    job = text_or_null()


LOCATION = OpenApiParameter(
    "Location", str, OpenApiParameter.HEADER, response=[202], description="where the job can be followed"
)
"""The header that goes with the `job` of an answer."""


class CheckAnswer(serializers.Serializer):
    """One check: what was found, and what to do about it."""

    id = serializers.CharField()
    state = serializers.ChoiceField(choices=["ok", "warning", "failed", "unknown"])
    message = serializers.CharField()
    fix = serializers.CharField(allow_blank=True)


def check_json(check: Check) -> dict[str, Any]:
    """One check; `state` is ok, warning, failed or unknown."""
    return {"id": check.id, "state": check.state, "message": check.message, "fix": check.fix}
