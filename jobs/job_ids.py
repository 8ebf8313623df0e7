"""What a job is called in addresses: `duty-12`, `run-7`, `validation-3`; and how a call of long work names its job."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from django.urls import reverse
from rest_framework.response import Response

from core.errors import NotFound
from jobs.models import Duty


class JobType(StrEnum):
    """What a job is: work that recurs, one check of ranges, or a check that somebody asked for."""

    DUTY = "duty"
    RUN = "run"
    VALIDATION = "validation"


def job_id(kind: JobType, number: int) -> str:
    """Its name."""
    return f"{kind}-{number}"


def parse_job_id(given: str) -> tuple[JobType, int]:
    """What it is, and its number. Raises NotFound."""
    kind, _, number = given.partition("-")
    if kind not in set(JobType) or not number.isascii() or not number.isdigit() or len(number) > 18:
        raise NotFound(f"there is no job '{given[:40]}'")
    return JobType(kind), int(number)


def job_url(kind: JobType, number: int) -> str:
    """Where it can be followed."""
    return reverse("api-job", args=[job_id(kind, number)])


def duty_url(kind: str, subject: int) -> str | None:
    """Where the duty of a mirror or a source can be followed; None while it has none."""
    duty_id = Duty.objects.filter(kind=kind, subject=subject).values_list("pk", flat=True).first()
    return None if duty_id is None else job_url(JobType.DUTY, duty_id)


def accepted(body: Mapping[str, Any], job: str | None) -> Response:
    """202: what was asked for is being done, by this job."""
    return Response({**body, "job": job}, status=202, headers={"Location": job} if job else None)
