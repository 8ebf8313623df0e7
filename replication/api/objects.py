"""The replication API: how one object of a rule stands at its targets."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from adapters.places.reader import Seen, time_of
from core.errors import Invalid
from core.replicating.reasons import reason_words
from replication.api.rules import readable
from replication.status.objects import AtTarget, ObjectReading, Standing, VersionReading, look_at
from replication.status.versions import look_at_versions
from web.openapi import answers
from web.schemas import text_or_null, time_or_null
from web.serializers import rfc3339

KEY = OpenApiParameter("key", str, required=True, description="of the object, relative to the rule's places")


VERSION = OpenApiParameter(
    "version", str, description="only this version of the source is told; of a rule that copies all versions"
)


class StoredObjectAnswer(serializers.Serializer):
    """What a store tells of the object."""

    size = serializers.IntegerField()
    etag = serializers.CharField(allow_blank=True)
    modified_at = time_or_null()


class ObjectAtTargetAnswer(serializers.Serializer):
    """The object at one target; `there` is null where that has none, or could not be asked."""

    link = serializers.IntegerField()
    region = serializers.CharField()
    uri = serializers.CharField()
    status = serializers.ChoiceField([one.value for one in Standing if one is not Standing.COMPLETED])
    there = StoredObjectAnswer(allow_null=True)
    since = serializers.DateTimeField(allow_null=True, help_text="when it was first seen to lack, as far as is noted")
    attempts = serializers.IntegerField()
    code = text_or_null()
    message = text_or_null()
    next_try_at = time_or_null()


class VersionAtTargetAnswer(serializers.Serializer):
    """A version at one target; `version` is its id there, null where there is none yet."""

    link = serializers.IntegerField()
    status = serializers.ChoiceField([one.value for one in Standing if one is not Standing.COMPLETED])
    version = text_or_null()


class VersionStandingAnswer(serializers.Serializer):
    """A version of the source, or a delete marker, at each target."""

    version = serializers.CharField()
    marker = serializers.BooleanField()
    size = serializers.IntegerField()
    etag = serializers.CharField(allow_blank=True)
    modified_at = time_or_null()
    targets = VersionAtTargetAnswer(many=True)


class ObjectStandingAnswer(serializers.Serializer):
    """An object of a rule: any FAILED is FAILED, else any UNKNOWN, PENDING or SKIPPED that, else COMPLETED. `source`
    is null where it has none, or where its latest is a delete marker."""

    key = serializers.CharField()
    status = serializers.ChoiceField([one.value for one in Standing if one is not Standing.VERIFIED])
    source = StoredObjectAnswer(allow_null=True)
    targets = ObjectAtTargetAnswer(many=True)
    versions = VersionStandingAnswer(
        many=True, allow_null=True, help_text="the newest 100 of the source; null: only the latest objects are copied"
    )
    as_of = serializers.DateTimeField()


class RuleObjects(APIView):
    """Look at one object."""

    tag = "rules"

    @answers("Look at an object of a replication rule", 200, ObjectStandingAnswer, query=[KEY, VERSION])
    def get(self, request: Request, rule: str) -> Response:
        """The source and each target are asked now: VERIFIED is what is the same at both. Needs fs:ReadReplicationRule
        on it."""
        found = readable(request, rule)
        key = request.query_params.get("key", "")
        if not key or "\0" in key:
            raise Invalid("give the key of an object", field="key")
        version = request.query_params.get("version", "")
        if found.all_versions:
            return Response(object_json(look_at_versions(found, key, version)))
        if version:
            hint = "Leave it out: the rule copies the latest objects alone"
            raise Invalid("the rule knows no versions", field="version", hint=hint)
        return Response(object_json(look_at(found, key)))


def object_json(reading: ObjectReading) -> dict[str, Any]:
    """An object with each of its targets."""
    return {
        "key": reading.key,
        "status": reading.standing.value,
        "source": _found_json(reading.source),
        "targets": [_target_json(target) for target in reading.targets],
        "versions": None if reading.versions is None else [_version_json(one, reading) for one in reading.versions],
        "as_of": rfc3339(reading.as_of),
    }


def _found_json(seen: Seen | None) -> dict[str, Any] | None:
    if seen is None:
        return None
    return {"size": seen.info.size, "etag": seen.info.etag, "modified_at": rfc3339(seen.modified)}


def _version_json(one: VersionReading, reading: ObjectReading) -> dict[str, Any]:
    version = one.version
    targets = [
        {"link": target.link.number, "status": standing.value, "version": there or None}
        for target in reading.targets
        for standing, there in [one.at[target.link.pk]]
    ]
    return {
        "version": version.id,
        "marker": version.marker,
        "size": version.size,
        "etag": version.etag,
        "modified_at": rfc3339(time_of(version.modified)),
        "targets": targets,
    }


def _target_json(target: AtTarget) -> dict[str, Any]:
    row = target.open
    why = target.error or (row and (row.detail or (reason_words(row.code) if row.code else "")))
    return {
        "link": target.link.number,
        "region": target.link.region,
        "uri": target.link.uri,
        "status": target.standing.value,
        "there": _found_json(target.there),
        "since": rfc3339(row.since) if row else None,
        "attempts": row.attempts if row else 0,
        "code": (row and row.code) or None,
        "message": why or None,
        "next_try_at": rfc3339(row.due_at) if row else None,
    }
