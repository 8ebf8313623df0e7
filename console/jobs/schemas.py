"""The shapes of what the API says about jobs, and what fills them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rest_framework import serializers

from console.exports_summary import SourceRepository
from console.jobs.listing import Job
from jobs.job_ids import JobType, job_id, job_url
from jobs.models import JobLine
from jobs.queue_status import QueueReading
from mirrors.models import Repository, Run, Validation
from mirrors.status.runs import expected_of, run_status
from web.schemas import count_or_null, number_or_null, text_or_null, time_or_null
from web.serializers import rfc3339


class JobAnswer(serializers.Serializer):
    """A duty, a run or a validation. What a type of job doesn't have is null."""

    id = serializers.CharField(help_text="`duty-12`, `run-7` or `validation-3`")
    job = serializers.CharField(help_text="where it can be followed")
    type = serializers.ChoiceField(choices=[job_type.value for job_type in JobType])
    kind = serializers.CharField(
        help_text="of a duty what it does, of a run its check, of a validation what is checked"
    )
    state = serializers.CharField()
    mirror = text_or_null()
    branch = serializers.CharField(
        allow_null=True, help_text="of the duty of an export; as addresses have it: BRANCH:NAME where it has a name"
    )
    rule = serializers.CharField(allow_null=True, help_text="of the duties of a replication rule, its name")
    source_repository = serializers.CharField(allow_blank=True, help_text="'' of a replication rule")
    source_region = serializers.CharField()
    outcome = text_or_null()
    queue = text_or_null()
    worker = text_or_null()
    attempt = count_or_null()
    failures = count_or_null()
    due_at = time_or_null()
    asked_by = text_or_null()
    asked_at = time_or_null()
    started_at = time_or_null()
    ended_at = time_or_null()
    succeeded_at = time_or_null()
    ranges = count_or_null()
    ranges_done = count_or_null()
    entries = count_or_null()
    problems = count_or_null()
    entries_per_second = number_or_null()
    eta = time_or_null()


class JobDetailAnswer(JobAnswer):
    """A job, as it stands at a moment."""

    as_of = serializers.DateTimeField()


class QueueAnswer(serializers.Serializer):
    """A queue, and when one of its workers was last heard of."""

    name = serializers.CharField()
    heard_at = time_or_null()
    workers_busy = serializers.IntegerField()
    due = serializers.IntegerField()
    oldest_due_at = time_or_null()
    messages = serializers.IntegerField()
    trouble = text_or_null()


class WorkerAnswer(serializers.Serializer):
    """A worker that was heard of in the last day. One that was killed is `lost` after 30 s without a report; one of an
    older version reports nothing, and is told while it runs tasks."""

    name = serializers.CharField()
    queue = serializers.CharField()
    state = serializers.ChoiceField(choices=["alive", "lost"])
    duties = serializers.IntegerField(help_text="how many it runs now")
    heard_at = serializers.DateTimeField()
    host = text_or_null()
    pid = count_or_null()
    slots = serializers.IntegerField(allow_null=True, help_text="how many tasks it runs at a time")
    load = serializers.FloatField(allow_null=True, help_text="of its machine, over a minute")
    cores = count_or_null()
    started_at = time_or_null()
    spark = serializers.CharField(allow_null=True, help_text="address of the Spark that it uses, `local` for its own")
    spark_trouble = serializers.CharField(allow_null=True, help_text="why that can't be reached")


class LineAnswer(serializers.Serializer):
    """A line that a worker said."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    level = serializers.CharField(help_text="INFO, WARNING or ERROR")
    worker = serializers.CharField()
    message = serializers.CharField()


_NOTHING: dict[str, Any] = dict.fromkeys(JobAnswer().fields)


def duty_json(job: Job) -> dict[str, Any]:
    """A duty."""
    duty = job.duty
    return (
        _NOTHING
        | _named(JobType.DUTY, duty.pk, job.source)
        | {
            "kind": duty.kind,
            "state": job.state,
            "mirror": job.mirror.name if job.mirror else None,
            "branch": (job.about.branch or None) if job.about else None,
            "rule": (job.about.rule or None) if job.about else None,
            "outcome": duty.outcome or None,
            "queue": duty.queue,
            "worker": duty.holder if job.state == "held" else None,
            "attempt": duty.attempt,
            "failures": duty.failures,
            "due_at": rfc3339(duty.due_at),
            "started_at": rfc3339(duty.started_at),
            "ended_at": rfc3339(duty.ended_at),
            "succeeded_at": rfc3339(duty.succeeded_at),
        }
    )


def run_job_json(run: Run, *, now: datetime, held: bool) -> dict[str, Any]:
    """A check of ranges; without an end it is running only while the mirror's validation is `held`."""
    status = run_status(run, now=now, held=held)
    return (
        _NOTHING
        | _named(JobType.RUN, run.pk, run.mirror.source)
        | _progress(run)
        | {
            "kind": run.job,
            "state": "lost" if status.lost else run.outcome,
            "mirror": run.mirror.name,
            "outcome": run.error or None,
            "started_at": rfc3339(run.started_at),
            "ended_at": rfc3339(run.ended_at),
            "entries_per_second": None if status.rate is None else round(status.rate, 3),
            "eta": rfc3339(status.eta),
        }
    )


def validation_job_json(validation: Validation, *, now: datetime) -> dict[str, Any]:
    """A check that somebody asked for."""
    return (
        _NOTHING
        | _named(JobType.VALIDATION, validation.pk, validation.mirror.source)
        | _progress(validation)
        | {
            "kind": validation.what,
            "state": validation.state,
            "mirror": validation.mirror.name,
            "outcome": validation.error or None,
            "asked_by": validation.asked_by or None,
            "asked_at": rfc3339(validation.asked_at),
            "started_at": rfc3339(validation.started_at),
            "ended_at": rfc3339(validation.ended_at),
            "eta": rfc3339(expected_of(validation, now)),
        }
    )


def _named(kind: JobType, number: int, source: Repository | SourceRepository) -> dict[str, Any]:
    return {
        "id": job_id(kind, number),
        "job": job_url(kind, number),
        "type": kind.value,
        "source_repository": source.name,
        "source_region": source.region,
    }


def _progress(row: Run | Validation) -> dict[str, Any]:
    return {name: getattr(row, name) for name in ("ranges", "ranges_done", "entries", "problems")}


def line_json(line: JobLine) -> dict[str, Any]:
    """A line."""
    return {
        "id": line.pk,
        "at": rfc3339(line.at),
        "level": line.level,
        "worker": line.worker,
        "message": line.text,
    }


def queue_json(queue: QueueReading) -> dict[str, Any]:
    """A queue."""
    return {
        "name": queue.name,
        "heard_at": rfc3339(queue.beat),
        "workers_busy": queue.holders,
        "due": queue.due,
        "oldest_due_at": rfc3339(queue.oldest_due),
        "messages": queue.messages,
        "trouble": queue.trouble or None,
    }
