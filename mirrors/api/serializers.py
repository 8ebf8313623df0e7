"""Mirrors as JSON, and the bodies that the API takes."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.bringing import (
    LEAST_BYTES_PER_SECOND,
    MOST_BYTES_PER_SECOND,
    MOST_OBJECTS_PER_SECOND,
    MOST_WORKERS,
    ObjectReplication,
)
from core.errors import Invalid
from core.holding import LEAST_SECONDS, MOST_COPIES, MOST_POLICIES, MOST_SECONDS, WhenLate, parse_policies
from core.mirroring.branch_selection import LONGEST_GLOB, OnUnselect, check_priority
from core.mirroring.facts import History
from core.mirroring.object_check import Depth, Imported
from core.mirroring.promotion import Repair
from core.mirroring.rpo import LONGEST_RPO
from core.mirroring.source_moves import FirstSync
from core.sweeping import MOST_MOST
from db import clock
from mirrors.status.copying import on_request_json
from mirrors.status.mirror import MirrorStatus, branch_json
from mirrors.status.outages import outage_json
from mirrors.status.replication import replication_json
from web.labels import Labels
from web.pauses import pause_json
from web.serializers import Body, TrueOrFalse, rfc3339


@extend_schema_field({"type": "number", "exclusiveMinimum": 0, "maximum": 1})
class Share(serializers.FloatField):
    """A number that is more than 0 and at most 1: a depth that reads no object would be `etag`."""

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float) or not 0 < data <= 1:
            raise serializers.ValidationError("must be a number from above 0 to 1: the share of objects to read")
        return float(data)


class Seconds(serializers.IntegerField):
    """A whole number of seconds, as JSON's own number."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            raise serializers.ValidationError("must be a whole number of seconds")
        return data


class Whole(serializers.IntegerField):
    """A whole number, as JSON's own."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            raise serializers.ValidationError("must be a whole number")
        return data


_GLOBS = {"type": "array", "items": {"type": "string"}}


@extend_schema_field({"type": "object", "properties": {"include": _GLOBS, "exclude": _GLOBS}})
class BranchGlobs(serializers.Field):
    """Which branches: globs to include and to exclude, or one of both; mirrors/transitions/selection.py says what they
    may be."""

    def to_internal_value(self, data: Any) -> dict[str, list[str]]:
        known = isinstance(data, dict) and data.keys() <= {"include", "exclude"}
        if not known or not all(isinstance(globs, list) for globs in data.values()):
            raise serializers.ValidationError("must be an object with 'include' and 'exclude', each a list of globs")
        if not all(isinstance(glob, str) for globs in data.values() for glob in globs):
            raise serializers.ValidationError("a glob must be a string")
        return dict(data)

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field(
    {
        "type": "array",
        "maxItems": MOST_POLICIES,
        "items": {
            "type": "object",
            "required": ["branches"],
            "properties": {
                "branches": {"type": "string"},
                "copies": {"type": "integer", "minimum": 1, "maximum": MOST_COPIES},
                "hold_seconds": {"type": "integer", "minimum": LEAST_SECONDS, "maximum": MOST_SECONDS},
                "when_late": {"type": "string", "enum": [choice.value for choice in WhenLate]},
            },
        },
    }
)
class HoldPolicies(serializers.Field):
    """Merges that wait until regions have them, by branch; core/holding.py says what they may be."""

    def to_internal_value(self, data: Any) -> list[dict[str, Any]]:
        try:
            return parse_policies(data)
        except Invalid as error:
            raise serializers.ValidationError(error.message) from error

    def to_representation(self, value: Any) -> Any:
        return value


class CopyLimits(Body):
    """How much LakeMirror copies at most for a mirror. What is not given stays as it is."""

    workers = Whole(source="copy_workers", min_value=1, max_value=MOST_WORKERS, required=False)
    bytes_per_second = Whole(
        source="copy_bytes_per_second",
        min_value=LEAST_BYTES_PER_SECOND,
        max_value=MOST_BYTES_PER_SECOND,
        allow_null=True,
        required=False,
    )
    objects_per_second = Whole(
        source="copy_objects_per_second",
        min_value=1,
        max_value=MOST_OBJECTS_PER_SECOND,
        allow_null=True,
        required=False,
    )


class MirrorSettings(CopyLimits):
    """What may be chosen when a mirror is made, and changed later: names in the API, `source` is the column.

    Nothing is required: what is not given stays as it is, or is the column's default. See mirrors/services/settings.py.
    """

    paused = TrueOrFalse(required=False)
    validation_depth = serializers.ChoiceField(
        source="depth",
        choices=[choice.value for choice in Depth],
        required=False,
        help_text="of a mirror that exists: with a deeper one, no branch moves until everything has been validated "
        "again that deep",
    )
    content_sample = Share(required=False)
    imported = serializers.ChoiceField(choices=[choice.value for choice in Imported], required=False)
    first_sync = serializers.ChoiceField(choices=[choice.value for choice in FirstSync], required=False)
    repair_tampering = serializers.ChoiceField(choices=[choice.value for choice in Repair], required=False)
    branches = BranchGlobs(source="selected", required=False)
    tags = TrueOrFalse(required=False)
    object_replication = serializers.ChoiceField(choices=[choice.value for choice in ObjectReplication], required=False)
    copying_paused = TrueOrFalse(required=False)
    branch_priority = serializers.ListField(child=serializers.CharField(max_length=LONGEST_GLOB), required=False)
    follow_gc = TrueOrFalse(required=False)
    delete_percent = Whole(min_value=0, max_value=100, required=False)
    delete_most = Whole(min_value=0, max_value=MOST_MOST, required=False)
    hold = HoldPolicies(required=False)
    rpo_seconds = Seconds(min_value=1, max_value=LONGEST_RPO, allow_null=True, required=False)
    labels = Labels(required=False)

    def validate_branch_priority(self, value: list[str]) -> list[str]:
        """Raises Invalid."""
        check_priority(value)
        return value

    @property
    def settings(self) -> dict[str, Any]:
        """Those that were given, by column."""
        columns = {field.source for field in MirrorSettings().fields.values()}
        return {column: value for column, value in self.validated_data.items() if column in columns}


class MirrorChange(MirrorSettings):
    """The body of PATCH."""

    on_unselect = serializers.ChoiceField(choices=[choice.value for choice in OnUnselect], required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "on_unselect" in attrs and "selected" not in attrs:
            raise serializers.ValidationError({"on_unselect": "has no effect without 'branches'"})
        return super().validate(attrs)


class MirrorCreation(MirrorSettings):
    """The body of POST."""

    name = serializers.CharField(max_length=200)
    region = serializers.CharField(max_length=64)
    storage_namespace = serializers.CharField(max_length=1024)
    source_region = serializers.CharField(max_length=64, required=False, default="", allow_blank=True)
    adopt = serializers.BooleanField(required=False, default=False)
    history = serializers.ChoiceField(choices=[choice.value for choice in History], default=History.FULL.value)
    require_checks = TrueOrFalse(
        required=False, default=False, help_text="refuse with 409 if a check of the preflight fails"
    )

    @property
    def settings(self) -> dict[str, Any]:
        """With what is chosen once and for all."""
        return super().settings | {"history": self.validated_data["history"]}


class BranchNamed(Body):
    """A body that names a branch."""

    branch = serializers.CharField(max_length=256)


def mirror_json(reading: MirrorStatus) -> dict[str, Any]:
    """A mirror with what is known of it now; times in RFC 3339 UTC. What is selected stands in `selected_branches`."""
    mirror = reading.mirror
    settings = MirrorSettings(mirror).data
    return {
        "id": mirror.name,
        "name": mirror.name,
        "source_repository": mirror.source.name,
        "source_region": mirror.source.region,
        "region": mirror.region,
        "storage_namespace": mirror.storage_namespace,
        **settings,
        **pause_json(mirror.pause),
        "selected_branches": settings["branches"] | {"left_out": reading.left_out},
        "copied_objects": mirror.copied,
        "copied_bytes": mirror.copied_bytes,
        "replication": replication_json(mirror),
        "bringing": on_request_json(mirror, reading.as_of),
        "history": mirror.history,
        "status": reading.state.word,
        "reason_code": reading.reason_code,
        "reason": reading.sentence,
        "outages": [outage_json(outage, reading.as_of) for outage in reading.outages],
        "branches": [branch_json(branch) for branch in reading.branches],
        "warnings": [*reading.warnings, *filter(None, [reading.own_rules])],
        "source_looked_at": rfc3339(reading.looked_at),
        "destination_looked_at": rfc3339(reading.destination_looked_at),
        "created_at": rfc3339(mirror.created_at),
        "as_of": rfc3339(clock.now()),
    }
