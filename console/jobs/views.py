"""The page of jobs: workers, what they run, what waits, what fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from console import exports_summary
from console.deployment_status import disagreements_seen_by, queues_seen_by, workers_seen_by
from console.jobs.api import find_job, jobs_json
from console.jobs.listing import (
    KINDS,
    RUNS,
    about_of,
    duties_of,
    job_retry,
    jobs_of,
    others_of,
    progress_of,
    requested_checks,
)
from console.jobs.listing import duty_retry as retry
from console.jobs.log_lines import lines_of
from console.jobs.task_states import STATES, by_kind, failed_first, in_state, wrong
from console.jobs.workers import alive_by_queue
from db import clock
from jobs.job_ids import JobType
from jobs.kinds import label_of
from jobs.log import KEPT
from jobs.queue_status import troubles
from jobs.workers import lost_sentence
from mirrors.models import Mirror
from mirrors.models.querysets import MirrorQuerySet
from mirrors.services.rights import may_operate
from mirrors.services.stop_check import job_stop
from mirrors.views.tabs import may_see
from rbac import services as rbac
from web.pages import answered, whole_or_part

PAGE = 50


@never_cache
@require_safe
@may_see
def jobs(request: HttpRequest) -> HttpResponse:
    """Workers, checks and exports that run, and tasks: those in trouble one by one and the others by kind, or, once
    they are filtered, a list of all."""
    now = clock.now()
    visible = Mirror.objects.visible_to(request.user)
    running, checks = progress_of(visible, now), requested_checks(visible, now)
    exporting = exports_summary.going_on(request.user, now, RUNS)
    mirrors = {progress.run.mirror for progress in running} | {check.validation.mirror for check in checks}
    context = {
        "section": "jobs",
        "running": running,
        "requested_checks": checks,
        "exporting": exporting,
        "stoppable": _may_stop(request, mirrors),
        "now": now,
    }
    context |= _tasks(request, visible, now) | _machinery(request, visible, now)
    context["active"] = bool(running or exporting) or any(queue.holders or queue.due for queue in context["queues"])
    return render(request, whole_or_part(request, "jobs/jobs.html", "jobs/_jobs.html"), context)


def _tasks(request: HttpRequest, visible: MirrorQuerySet, now: datetime) -> dict[str, Any]:
    """A page of the tasks that were asked for; without any filter those in trouble, and a summary of all by kind."""
    kind, state, find = (request.GET.get(key, "").strip() for key in ("kind", "state", "find"))
    named = visible.filter(name__icontains=find) if find else visible
    rows = duties_of(named, others_of(request.user, find))
    grouped = not (kind in KINDS or state or find)
    chosen = wrong(rows, now) if grouped else in_state(rows, state, now)
    chosen = chosen.filter(kind=kind) if kind in KINDS else chosen
    page = Paginator(failed_first(chosen), PAGE).get_page(request.GET.get("page"))
    shown = jobs_of(list(page), now)
    return {
        "jobs": shown,
        "may_retry": {job.duty.pk for job in shown if rbac.allowed_any(request.user, *job.rights)},
        "page": page,
        "grouped": grouped,
        "by_kind": by_kind(rows, now) if grouped else [],
        "kinds": [(name, label_of(name)) for name in KINDS],
        "states": STATES | {"any": "Any state"},
        "kind": kind,
        "state": state,
        "find": find,
    }


def _machinery(request: HttpRequest, visible: MirrorQuerySet, now: datetime) -> dict[str, Any]:
    """Queues and workers, and what is wrong with them."""
    queues = queues_seen_by(request.user, visible, now)
    workers = workers_seen_by(request.user, visible, queues, now)
    alive = alive_by_queue(workers)
    return {
        "queues": queues,
        "workers": [worker for worker in workers if not worker.lost],
        "lost": [lost_sentence(worker.row) for worker in workers if worker.lost and worker.row],
        "alive": {queue.name: alive.get(queue.name, 0) for queue in queues},
        "spark_troubles": sorted({worker.spark_trouble for worker in workers} - {""}),
        "starting": [queue.name for queue in queues if queue.starting],
        "troubles": [*troubles(queues), *disagreements_seen_by(request.user)],
    }


@never_cache
@require_safe
@may_see
def job_log(request: HttpRequest, job: str) -> HttpResponse:
    """What workers said of a job lately, the last line first."""
    kind, row = find_job(request.user, job)
    now = clock.now()
    (job_json,) = jobs_json(kind, [row], now) or [None]
    if job_json is None:
        raise Http404(f"no job {job}")
    about = about_of([row]).get(row.pk) if kind is JobType.DUTY else None
    context = {
        "section": "jobs",
        "job": job_json,
        "label": label_of(job_json["kind"]) if kind is JobType.DUTY else f"{kind.value.capitalize()} {row.pk}",
        "state": STATES.get(job_json["state"], job_json["state"].capitalize()),
        "subject": about.name if about else job_json["mirror"] or job_json["source_repository"],
        "about": about,
        "lines": lines_of(kind, row).order_by("-pk")[:KEPT],
        "line_limit": KEPT,
        "now": now,
        "active": job_json["state"] in ("held", "running", "retrying", "queued"),
    }
    return render(request, whole_or_part(request, "jobs/log.html", "jobs/_log.html"), context)


def _may_stop(request: HttpRequest, mirrors: Iterable[Mirror]) -> set[str]:
    """The names of the mirrors whose checks the user may stop."""
    return {mirror.name for mirror in mirrors if may_operate(request.user, mirror)}


@require_POST
@may_see
def duty_retry(request: HttpRequest, duty: int) -> HttpResponse:
    """Make a duty due now; the page says so at once."""
    seen = duties_of(Mirror.objects.visible_to(request.user), others_of(request.user))
    duty_row = get_object_or_404(seen, pk=duty)
    verb = partial(retry, actor=request.user, duty=duty_row)
    return _done(request, verb, f"Queued: {label_of(duty_row.kind)}.")


@require_POST
@may_see
def job_stopped(request: HttpRequest, job: str) -> HttpResponse:
    """Have a check stopped; the page says so at once."""
    kind, row = find_job(request.user, job)
    verb = partial(job_stop, actor=request.user, kind=kind, row=row)
    return _done(request, verb, f"Stopped: {_what(kind, row)}.")


@require_POST
@may_see
def job_again(request: HttpRequest, job: str) -> HttpResponse:
    """Have a check done once more."""
    kind, row = find_job(request.user, job)
    verb = partial(job_retry, actor=request.user, kind=kind, row=row)
    return _done(request, verb, f"Queued again: {_what(kind, row)}.")


def _what(kind: JobType, row: Any) -> str:
    return label_of(row.kind) if kind is JobType.DUTY else f"{kind} {row.pk} of {row.mirror.name}"


def _done(request: HttpRequest, verb: Callable[[], object], message: str) -> HttpResponse:
    return answered(request, verb, message, f"{reverse('jobs')}?{request.GET.urlencode()}")
