"""Mirrors as JSON, and the bodies that the API takes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rest_framework import serializers

from core.facts import History
from core.presence import Depth, Imported
from mirrors.models import Mirror


class MirrorCreation(serializers.Serializer):
    """The body of POST. Unknown fields are refused, so that a slip of the pen is not silently ignored."""

    name = serializers.CharField(max_length=200)
    region = serializers.CharField(max_length=64)
    storage_namespace = serializers.CharField(max_length=1024)
    source_region = serializers.CharField(max_length=64, required=False, default="", allow_blank=True)
    adopt = serializers.BooleanField(required=False, default=False)

    validation_depth = serializers.ChoiceField(choices=[depth.value for depth in Depth], default=Depth.ETAG.value)
    content_sample = serializers.FloatField(default=1.0, max_value=1.0)
    imported = serializers.ChoiceField(choices=[one.value for one in Imported], default=Imported.BLOCK.value)
    history = serializers.ChoiceField(choices=[one.value for one in History], default=History.FULL.value)

    def validate_content_sample(self, share: float) -> float:
        """More than nothing: a depth that reads no object would be `etag`."""
        if not share > 0.0:
            raise serializers.ValidationError("must be more than 0 and at most 1: the share of objects to read")
        return share

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        unknown = sorted(set(self.initial_data) - set(self.fields))
        if unknown:
            raise serializers.ValidationError(
                {unknown[0]: f"is not a field of a mirror (known: {', '.join(self.fields)})"}
            )
        return attrs


class BranchNamed(serializers.Serializer):
    """A body that names a branch."""

    branch = serializers.CharField(max_length=256)


def mirror_json(
    mirror: Mirror, *, status: str, reason_code: str, reason: str, branches: list[dict[str, Any]]
) -> dict[str, Any]:
    """One mirror; times in RFC 3339 UTC."""
    return {
        "id": mirror.name,
        "name": mirror.name,
        "source_repository": mirror.source.name,
        "source_region": mirror.source.region,
        "region": mirror.region,
        "storage_namespace": mirror.storage_namespace,
        "object_replication": "native",
        "validation_depth": mirror.depth,
        "content_sample": mirror.content_sample,
        "imported": mirror.imported,
        "history": mirror.history,
        "status": status,
        "reason_code": reason_code,
        "reason": reason,
        "branches": branches,
        "created_at": rfc3339(mirror.created_at),
        "as_of": rfc3339(datetime.now(UTC)),
    }


def rfc3339(at: datetime | None) -> str | None:
    """A moment as RFC 3339 in UTC, to the millisecond."""
    return None if at is None else at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
