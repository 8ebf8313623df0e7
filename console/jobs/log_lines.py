"""What was said of a job, whatever it is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import Q, QuerySet

from jobs.job_ids import JobType
from jobs.models import Duty, JobLine
from mirrors.models import MirrorDuty


def lines_of(kind: JobType, row: Any) -> QuerySet[JobLine]:
    """What was said of a job: of a check what was said of its mirror's validation in its time."""
    if kind is JobType.DUTY:
        return JobLine.objects.filter(duty=row)
    duty = Duty.objects.filter(kind=MirrorDuty.VALIDATE, subject=row.mirror_id).values("pk")
    began = row.started_at if kind is JobType.RUN else row.asked_at
    until = Q() if row.ended_at is None else Q(at__lte=row.ended_at + timedelta(seconds=1))
    return JobLine.objects.filter(until, duty__in=duty, at__gte=began)
