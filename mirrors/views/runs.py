"""The checks of a mirror on its page: those that go on, the last ones, and those that somebody asked for."""

from __future__ import annotations

from functools import partial

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from db import clock
from mirrors.models import Mirror
from mirrors.services.validations import validation_ask
from mirrors.status.mirror import mirror_statuses
from mirrors.status.runs import ValidationStatus, expected_of, is_held, run_status
from mirrors.views.tabs import carry_out, find_visible, may_see, show_tab
from web.pages import page_of_rows, with_query

ASKED = 10


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
        "runs": [run_status(run, now=now, held=held) for run in page.rows],
        "requested_checks": [
            ValidationStatus(validation=validation, eta=expected_of(validation, now)) for validation in validations
        ],
        "requested_number": mirror.validations.count(),
        "first_page": with_query(request),
    }
    return show_tab(request, mirror_statuses([mirror], now)[0], "mirror_runs", context)


@require_POST
@may_see
def mirror_validate(request: HttpRequest, name: str) -> HttpResponse:
    """Have everything looked at again that the mirror's heads name."""
    mirror: Mirror = find_visible(request, name)
    ask = partial(validation_ask, actor=request.user, mirror=mirror)
    return carry_out(request, mirror, ask, "Queued: everything that the heads refer to is validated again; see Runs.")
