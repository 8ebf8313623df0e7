"""The replication API: how an open object is told."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from core.replicating.reasons import reason_words
from core.replicating.states import OpenKind, OpenStatus
from replication.models import OpenObject
from web.schemas import count_or_null
from web.serializers import rfc3339


class OpenObjectAnswer(serializers.Serializer):
    """An object that is not at a target as it is at the source."""

    id = serializers.IntegerField()
    key = serializers.CharField(help_text="relative to the rule's places")
    kind = serializers.ChoiceField([kind.value for kind in OpenKind], help_text="what is to be done at the target")
    status = serializers.ChoiceField([status.value for status in OpenStatus])
    size = count_or_null()
    etag = serializers.CharField(allow_blank=True)
    version = serializers.CharField(
        allow_blank=True,
        help_text="where all versions are copied: which one the last attempt failed for; of kind hide: the source's "
        "delete marker that hides what the target shows; of kind purge: the target's version that is to go",
    )
    since = serializers.DateTimeField()
    attempts = serializers.IntegerField()
    code = serializers.CharField(allow_blank=True)
    message = serializers.CharField(allow_blank=True)
    next_try_at = serializers.DateTimeField(allow_null=True, help_text="null: a deletion that is not let through yet")


def open_json(row: OpenObject) -> dict[str, Any]:
    """An open object; `message` is what the store said, or else the code in words."""
    return {
        "id": row.pk,
        "key": row.name,
        "kind": row.kind,
        "status": row.status,
        "size": row.size if row.size >= 0 else None,
        "etag": row.etag,
        "version": row.of_version,
        "since": rfc3339(row.since),
        "attempts": row.attempts,
        "code": row.code,
        "message": row.detail or (reason_words(row.code) if row.code else ""),
        "next_try_at": rfc3339(row.due_at),
    }
