"""The replication API: the work in hand, over all mirrors."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db.models import Q
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.deployment_status import disagreements_seen_by, queues_seen_by, workers_seen_by
from console.jobs.listing import KINDS, duties_of, job_retry, jobs_of, others_of
from console.jobs.log_lines import lines_of
from console.jobs.schemas import (
    JobAnswer,
    JobDetailAnswer,
    LineAnswer,
    QueueAnswer,
    WorkerAnswer,
    duty_json,
    line_json,
    queue_json,
    run_job_json,
    validation_job_json,
)
from console.jobs.task_states import STATES, in_state
from console.jobs.workers import worker_json
from core.errors import Invalid, NotFound
from db import clock
from jobs.job_ids import JobType, accepted, job_url, parse_job_id
from jobs.models import Duty
from jobs.queue_status import troubles
from mirrors.models import Mirror, MirrorDuty, Run, Validation
from mirrors.models.querysets import MirrorQuerySet
from mirrors.services.rights import require_sight
from mirrors.services.stop_check import job_stop
from web.openapi import answers
from web.paging import PAGE, a_page, newest_first, one_of, page_of, rows_after
from web.schemas import LOCATION, JobTakenAnswer, many_texts, page_answer, page_with
from web.serializers import rfc3339

TYPES = [job_type.value for job_type in JobType]
WHICH = (
    OpenApiParameter("type", str, enum=TYPES, description="which jobs; default: duties"),
    OpenApiParameter("mirror", str, description="only those of this mirror, and of its source"),
    OpenApiParameter("kind", str, enum=KINDS, description="only duties of this kind"),
    OpenApiParameter("state", str, enum=list(STATES), description="only duties in this state"),
    OpenApiParameter("open", str, enum=("true",), description="only runs and validations that have not ended"),
)


class Jobs(APIView):
    """Duties, runs or validations, with the queues and the workers."""

    tag = "jobs"

    @answers(
        "List jobs",
        200,
        page_with(JobAnswer, queues=QueueAnswer(many=True), workers=WorkerAnswer(many=True), troubles=many_texts()),
        query=[*PAGE, *WHICH],
    )
    def get(self, request: Request) -> Response:
        """A page of one type: duties by number, others the last one first. Needs fs:ListRepositories on `*`, or
        fs:ReadRepository on single mirrors."""
        require_sight(request.user)
        now, visible = clock.now(), Mirror.objects.visible_to(request.user)
        queues = queues_seen_by(request.user, visible, now)
        beside = {
            "queues": [queue_json(queue) for queue in queues],
            "workers": [worker_json(one) for one in workers_seen_by(request.user, visible, queues, now)],
            "troubles": [*troubles(queues), *disagreements_seen_by(request.user)],
        }
        return Response(_page(request, visible, now) | beside)


def _page(request: Request, visible: MirrorQuerySet, now: datetime) -> dict[str, Any]:
    kind = JobType(one_of(request, "type", TYPES) or JobType.DUTY)
    if name := request.query_params.get("mirror"):
        visible = visible.filter(name=name)
    rows = _duties(request, visible, now) if kind is JobType.DUTY else _others(request, kind, visible)
    amount, after = page_of(request)
    some = list(rows_after(rows, "pk", after, newest=kind is not JobType.DUTY)[: amount + 1])
    page, envelope = a_page(some, amount, lambda row: row.pk)
    results = jobs_json(kind, page, now)
    envelope["pagination"]["results"] = len(results)
    return envelope | {"results": results}


def _refuse(request: Request, names: Iterable[str], type_: str) -> None:
    """A filter that would do nothing is told of, not left aside."""
    for name in names:
        if name in request.query_params:
            raise Invalid(f"this filter does not exist for jobs of the type {type_}", field=name)


def _duties(request: Request, visible: MirrorQuerySet, now: datetime) -> Any:
    _refuse(request, ["open"], JobType.DUTY)
    others = Q(pk__in=[]) if request.query_params.get("mirror") else others_of(request.user)
    rows = in_state(duties_of(visible, others), one_of(request, "state", STATES), now)
    kind = one_of(request, "kind", KINDS)
    return rows.filter(kind=kind) if kind else rows


def _others(request: Request, kind: JobType, visible: MirrorQuerySet) -> Any:
    _refuse(request, ["kind", "state"], kind)
    rows = rows_of(kind, visible)
    return rows.filter(ended_at=None) if one_of(request, "open", ("true",)) else rows


def rows_of(kind: JobType, visible: MirrorQuerySet) -> Any:
    """Runs or validations at some mirrors, with what their JSON needs."""
    model, more = (Run, ["validation"]) if kind is JobType.RUN else (Validation, [])
    return model.objects.filter(mirror__in=visible.order_by().values("pk")).select_related("mirror__source", *more)


def jobs_json(kind: JobType, rows: list[Any], now: datetime) -> list[dict[str, Any]]:
    """Rows of one type. A duty whose mirror is just gone is left out."""
    if kind is JobType.DUTY:
        return [duty_json(job) for job in jobs_of(rows, now)]
    if kind is JobType.VALIDATION:
        return [validation_job_json(row, now=now) for row in rows]
    mirrors = {row.mirror_id for row in rows}
    busy = Duty.objects.filter(kind=MirrorDuty.VALIDATE, subject__in=mirrors, until__gt=now)
    held = set(busy.values_list("subject", flat=True))
    return [run_job_json(row, now=now, held=row.mirror_id in held) for row in rows]


def find_job(user: Any, given: str) -> tuple[JobType, Any]:
    """The job of that name, if the user may see it. Raises Denied and NotFound."""
    require_sight(user)
    kind, number = parse_job_id(given)
    visible = Mirror.objects.visible_to(user)
    rows = duties_of(visible, others_of(user)) if kind is JobType.DUTY else rows_of(kind, visible)
    row = rows.filter(pk=number).first()
    if row is None:
        raise NotFound(f"there is no job '{given[:40]}'")
    return kind, row


class JobDetail(APIView):
    """One job."""

    tag = "jobs"

    @answers("Get a job", 200, JobDetailAnswer)
    def get(self, request: Request, job: str) -> Response:
        """How it stands now. Needs fs:ListRepositories on `*`, or fs:ReadRepository on single mirrors."""
        kind, row = find_job(request.user, job)
        now = clock.now()
        results = jobs_json(kind, [row], now)
        if not results:
            raise NotFound(f"there is no job '{job[:40]}'")
        return Response(results[0] | {"as_of": rfc3339(now)})


class JobLog(APIView):
    """What workers said of a job lately."""

    tag = "jobs"

    @answers("Get a job log", 200, page_answer(LineAnswer), query=PAGE)
    def get(self, request: Request, job: str) -> Response:
        """A page of lines, the last one first. Needs fs:ListRepositories on `*`, or fs:ReadRepository on single
        mirrors."""
        kind, row = find_job(request.user, job)
        return Response(newest_first(request, lines_of(kind, row), line_json))


class JobStop(APIView):
    """Stop a check. No commit is judged by it; what was written down of its ranges stays."""

    tag = "jobs"

    @answers("Stop a job", 202, JobTakenAnswer, query=[LOCATION])
    def post(self, request: Request, job: str) -> Response:
        """202 with the job, which ends within moments. Needs fs:OperateMirror on the source or the mirror."""
        kind, row = find_job(request.user, job)
        message = job_stop(actor=request.user, kind=kind, row=row)
        return accepted({"message": message}, job_url(kind, row.pk))


class JobRetry(APIView):
    """Have a job done now, or once more."""

    tag = "jobs"

    @answers("Retry a job", 202, JobTakenAnswer, query=[LOCATION])
    def post(self, request: Request, job: str) -> Response:
        """202 with the job that does it. Needs fs:OperateMirror on the source or the mirror."""
        kind, row = find_job(request.user, job)
        message, url = job_retry(actor=request.user, kind=kind, row=row)
        return accepted({"message": message}, url)
