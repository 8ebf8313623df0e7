"""Exports as JSON, and the bodies that their API takes: names are those of the configuration of old."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from core.exporting.manifests import Mode
from core.exporting.state_machine import State, is_exported
from core.mirroring.states import State as Word
from exports.models import Export, ExportFailure, ExportRun, SkippedCommit
from exports.services.exports import LONGEST_PATTERN, MOST_PATTERNS, MOST_PER_SECOND, Wish
from exports.status.export import ExportSummary
from web.labels import Labels
from web.pauses import PauseAnswer, pause_json
from web.schemas import count_or_null, number_or_null, text_or_null, time_or_null
from web.serializers import Body, TrueOrFalse, rfc3339

LONGEST_URI = 2000


class WholeNumber(serializers.IntegerField):
    """JSON's own whole number."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            raise serializers.ValidationError("must be a whole number, or null")
        return data


def limit(name: str, **more: Any) -> WholeNumber:
    """How many a second, or null for no limit."""
    return WholeNumber(required=False, allow_null=True, min_value=1, max_value=MOST_PER_SECOND[name], **more)


class Pattern(serializers.CharField):
    """An expression, as it stands: blanks count."""

    def __init__(self) -> None:
        super().__init__(max_length=LONGEST_PATTERN, trim_whitespace=False)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise serializers.ValidationError("must be text")
        return super().to_internal_value(data)


class ExportConfiguration(Body):
    """How a branch is exported. PUT replaces every field: one that is left out gets its default. `isContinuous`,
    `manifest` and `includeActions` stay as they were then: nobody ends a continuous export, or removes files, by
    leaving one out. A new export without them is made once, and has a manifest a day and nothing of
    `_lakefs_actions/`."""

    exportPath = serializers.CharField(max_length=LONGEST_URI, help_text="s3://BUCKET/PATH")
    exportStatusPath = serializers.CharField(
        max_length=LONGEST_URI, required=False, allow_blank=True, default="", help_text="where status files are written"
    )
    lastKeysInPrefixRegexp = serializers.ListField(
        child=Pattern(),
        required=False,
        default=list,
        max_length=MOST_PATTERNS,
        help_text="RE2 expressions: directories that get a _lakefs_success, files that come last in their directory",
    )
    isContinuous = TrueOrFalse(
        required=False, help_text="export every commit, not only the current one; left out: as it was, at first once"
    )
    manifest = serializers.ChoiceField(
        [mode.value for mode in Mode],
        required=False,
        help_text="when a list of all files is written at the status path: after each run, at most once a day, never; "
        "left out: as it was, at first once a day",
    )
    includeActions = TrueOrFalse(
        required=False, help_text="also what is below _lakefs_actions/; left out: as it was, at first not"
    )
    objectsPerSecond = limit("objects_per_second", default=None)
    bytesPerSecond = limit("bytes_per_second", default=None)

    def wish(self) -> Wish:
        """What the service takes."""
        given = self.validated_data
        return Wish(
            path=given["exportPath"],
            status_path=given["exportStatusPath"],
            patterns=given["lastKeysInPrefixRegexp"],
            continuous=given.get("isContinuous"),
            manifest=given.get("manifest"),
            actions=given.get("includeActions"),
            objects_per_second=given["objectsPerSecond"],
            bytes_per_second=given["bytesPerSecond"],
        )


class ExportSet(serializers.Serializer):
    """What is exported from now on."""

    message = serializers.CharField(help_text="in a sentence")


class ExportLimits(Body):
    """How fast an export may go. What is left out stays as it is."""

    objectsPerSecond = limit("objects_per_second")
    bytesPerSecond = limit("bytes_per_second")

    def changes(self) -> dict[str, int | None]:
        """What the service takes."""
        names = {"objectsPerSecond": "objects_per_second", "bytesPerSecond": "bytes_per_second"}
        return {names[key]: value for key, value in self.validated_data.items()}


class ExportRunAnswer(serializers.Serializer):
    """A run: how far it is, or what came of it."""

    id = serializers.CharField()
    ref = serializers.CharField(help_text="the commit")
    base = text_or_null()
    phase = serializers.ChoiceField(ExportRun.Phase.choices)
    outcome = text_or_null()
    error = text_or_null()
    asked_by = text_or_null()
    repairs = serializers.CharField(
        allow_null=True, help_text="the verification whose findings it repairs; null: it exports a commit"
    )
    started_at = serializers.DateTimeField()
    ended_at = time_or_null()
    to_copy = serializers.IntegerField(help_text="files to bring, as far as it is planned")
    to_copy_bytes = serializers.IntegerField()
    to_delete = serializers.IntegerField()
    copied = serializers.IntegerField()
    copied_bytes = serializers.IntegerField()
    skipped = serializers.IntegerField(help_text="there already, as they should be")
    deleted = serializers.IntegerField()
    kept = serializers.IntegerField(
        help_text="were to be removed, but what is there is not what was exported: left alone, as somebody's own"
    )
    kept_paths = serializers.ListField(child=serializers.CharField(), help_text="some of these")
    lost_commits = serializers.ListField(
        child=serializers.CharField(),
        help_text="gone from the source: what was brought of them alone is not known any more, and stays",
    )
    failed = serializers.IntegerField()
    requests = serializers.IntegerField()
    skipped_commits = serializers.IntegerField(
        allow_null=True, help_text="between the run before and this one, never exported by themselves"
    )


class ExportStatus(PauseAnswer):
    """Where an export stands."""

    repository = serializers.CharField()
    branch = serializers.CharField()
    name = serializers.CharField(
        allow_blank=True, help_text="of the export, where the branch has several: addresses have it as BRANCH:NAME"
    )
    region = serializers.CharField()
    status = serializers.ChoiceField([state.value for state in State], help_text="'' before the first run")
    state = serializers.ChoiceField([word.value for word in Word], help_text="as the pages say it")
    reason = serializers.CharField(help_text="what is happening and what to do, in a sentence")
    action = serializers.CharField(
        allow_null=True, help_text="what helps: repair, repair-drift, run, resume, verify or delete"
    )
    error_message = text_or_null()
    paused = serializers.BooleanField()
    labels = Labels()
    current_ref = text_or_null()
    last_success_ref = text_or_null()
    last_success_at = time_or_null()
    head = text_or_null()
    head_at = time_or_null()
    up_to_date = serializers.BooleanField(allow_null=True, help_text="whether the destination holds the complete head")
    behind_commits = serializers.IntegerField(
        allow_null=True, help_text="commits of the branch's line that the destination lacks; null: unknown"
    )
    behind_at_least = serializers.BooleanField(help_text="there are more of them")
    behind_since = time_or_null()
    behind_seconds = number_or_null()
    look_error = text_or_null()
    next_look_at = time_or_null()
    retrying = serializers.CharField(
        allow_null=True, help_text="the error of the last attempt, while it is being retried"
    )
    run = ExportRunAnswer(allow_null=True, help_text="the current run, else the last one")
    failures = count_or_null()
    as_of = serializers.DateTimeField()


class SkippedCommitAnswer(serializers.Serializer):
    """A commit that landed while another one was exported: `run` exported a newer one, `exported_ref`, instead."""

    id = serializers.CharField()
    message = serializers.CharField(allow_blank=True)
    committed_at = serializers.DateTimeField()
    run = serializers.CharField()
    exported_ref = serializers.CharField()


class ExportFailureAnswer(serializers.Serializer):
    """A file that could not be brought or removed."""

    path = serializers.CharField()
    reason = serializers.CharField()
    detail = serializers.CharField()
    at = serializers.DateTimeField()


class ExportAnswer(serializers.Serializer):
    """An export in a list: its branch, configuration and state."""

    configuration = ExportConfiguration()
    status = ExportStatus()


def configuration_json(export: Export) -> dict[str, Any]:
    """The configuration as PUT takes it."""
    return {
        "exportPath": export.path,
        "exportStatusPath": export.status_path,
        "lastKeysInPrefixRegexp": list(export.patterns),
        "isContinuous": export.continuous,
        "manifest": export.manifest,
        "includeActions": export.actions,
        "objectsPerSecond": export.objects_per_second,
        "bytesPerSecond": export.bytes_per_second,
    }


def status_json(reading: ExportSummary) -> dict[str, Any]:
    """Where an export stands; what is not known is null."""
    export, run, behind = reading.export, reading.run, reading.behind
    known = reading.seen and reading.told.state is not Word.DAMAGED
    return {
        "repository": export.repository,
        "branch": export.branch,
        "name": export.name,
        "region": export.region,
        "status": export.state,
        "state": reading.told.state.value,
        "reason": str(reading.told.sentence),
        "action": reading.told.action or None,
        "error_message": export.error or None,
        "paused": export.paused,
        **pause_json(export.pause),
        "labels": export.labels,
        "current_ref": export.current_ref or None,
        "last_success_ref": export.last_success_ref or None,
        "last_success_at": rfc3339(export.succeeded_at),
        "head": export.head or None,
        "head_at": rfc3339(export.head_at),
        "up_to_date": is_exported(export.standing(), export.head) if known else None,
        "behind_commits": behind.commits if behind else None,
        "behind_at_least": bool(behind and behind.more),
        "behind_since": rfc3339(behind.since) if behind else None,
        "behind_seconds": None if reading.lag is None else round(reading.lag, 3),
        "look_error": export.look_error or None,
        "next_look_at": rfc3339(reading.due_at),
        "retrying": reading.retrying or None,
        "run": run and run_json(run),
        "failures": run.failed if run else None,
        "as_of": rfc3339(reading.as_of),
    }


def run_json(run: ExportRun) -> dict[str, Any]:
    """A run and its figures."""
    columns = (
        "to_copy",
        "to_copy_bytes",
        "to_delete",
        "copied",
        "copied_bytes",
        "skipped",
        "deleted",
        "kept",
        "failed",
        "requests",
        "skipped_commits",
    )
    return {
        "id": str(run.pk),
        "ref": run.ref,
        "base": run.base or None,
        "phase": run.phase,
        "outcome": run.outcome or None,
        "error": run.error or None,
        "asked_by": run.asked_by or None,
        "repairs": str(run.repairs_id) if run.repairs_id else None,
        "started_at": rfc3339(run.started_at),
        "ended_at": rfc3339(run.ended_at),
        "kept_paths": run.kept_keys,
        "lost_commits": run.lost,
        **{name: getattr(run, name) for name in columns},
    }


def failure_json(failure: ExportFailure) -> dict[str, Any]:
    """A failed file; what of its name is no UTF-8 is shown as \\xNN."""
    return {
        "path": failure.name,
        "reason": failure.reason,
        "detail": failure.detail,
        "at": rfc3339(failure.at),
    }


def skipped_json(skipped: SkippedCommit) -> dict[str, Any]:
    """A commit that no run exported by itself, and the run that took it along."""
    return {
        "id": skipped.sha,
        "message": skipped.message,
        "committed_at": rfc3339(skipped.committed_at),
        "run": str(skipped.run_id),
        "exported_ref": skipped.run.ref,
    }
