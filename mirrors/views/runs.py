"""The checks of a mirror on its page: those that go on, the last ones, and those that somebody asked for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from core.text.eta import expected_end, per_second
from db import clock
from jobs.job_ids import JobType, job_id
from mirrors.api.runs import is_held
from mirrors.models import Mirror, Run
from mirrors.services.validations import validation_ask
from mirrors.status.mirror import mirror_statuses
from mirrors.status.validations import ValidationStatus, expected_of
from mirrors.views.tabs import carry_out, find_visible, may_see, show_tab
from web.pages import page_of_rows, with_query

ASKED = 10


@dataclass(frozen=True, slots=True)
class RunRow:
    """A check and how fast it goes. One without an end whose worker is gone is `lost`: nobody goes on with it."""

    run: Run
    running: bool
    seconds: float | None
    rate: float | None
    eta: datetime | None

    @property
    def id(self) -> str:
        """Its name as a job."""
        return job_id(JobType.RUN, self.run.pk)

    @property
    def lost(self) -> bool:
        """Whether it ended without a word."""
        return self.run.ended_at is None and not self.running


@never_cache
@require_safe
@may_see
def runs(request: HttpRequest, name: str) -> HttpResponse:
    """A mirror's checks, the last one first."""
    mirror, now = find_visible(request, name), clock.now()
    page = page_of_rows(request, mirror.runs.all(), "pk", newest=True)
    held = is_held(mirror, now)
    validations = mirror.validations.order_by("-pk")[:ASKED]
    context = {
        "page": page,
        "runs": [_row(run, held, now) for run in page.rows],
        "requested_checks": [
            ValidationStatus(validation=validation, eta=expected_of(validation, now)) for validation in validations
        ],
        "requested_number": mirror.validations.count(),
        "first_page": with_query(request),
    }
    return show_tab(request, mirror_statuses([mirror], now)[0], "mirror_runs", context)


def _row(run: Run, held: bool, now: datetime) -> RunRow:
    running = run.ended_at is None and held
    until = run.ended_at or (now if running else None)
    return RunRow(
        run=run,
        running=running,
        seconds=(until - run.started_at).total_seconds() if until else None,
        rate=per_second(run.entries, run.started_at, until) if until else None,
        eta=expected_end(run.ranges_done, run.ranges, run.started_at, now) if running else None,
    )


@require_POST
@may_see
def mirror_validate(request: HttpRequest, name: str) -> HttpResponse:
    """Have everything looked at again that the mirror's heads name."""
    mirror: Mirror = find_visible(request, name)
    ask = partial(validation_ask, actor=request.user, mirror=mirror)
    return carry_out(request, mirror, ask, "Queued: all that the mirror's heads name is checked again; see Runs.")
