"""One object that commits lack, on a page of its own: which commits, since when, and waiving it for all of them."""

from __future__ import annotations

import json

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from core.access.policies import repository_arn
from core.errors import LakeMirrorError, NotFound
from db import clock
from mirrors.models import Blocker, Mirror, WaivedObject
from mirrors.queries.missing import blockers_of
from mirrors.services.waiver_impact import object_impact
from mirrors.services.waivers import waivable_objects, waiver_give
from mirrors.views.forms import ObjectWaiverForm
from mirrors.views.tabs import SECTION, find_visible, may_change, may_operate, may_see, outages_of
from rbac import services as rbac
from web.errors import status_of

SHOWN = 50


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@may_see
def missing_object(request: HttpRequest, name: str) -> HttpResponse:
    """What lacks it; asks why, and waives it for all that hold it. 404 where nothing lacks it and it isn't waived."""
    mirror, address = find_visible(request, name), request.GET.get("address", "")
    if request.method == "POST":
        rbac.require(request.user, ("fs:MirrorRepository", repository_arn(mirror.source.name)))
    elif not address:
        return redirect("mirror_backlog", mirror.name)
    things, waived = _things(mirror, address), _waived(mirror, address)
    if not things and waived is None:
        raise NotFound(f"no commit at '{mirror.name}' lacks an object at {address[:200]}")
    form = ObjectWaiverForm(request.POST if request.method == "POST" else None, mirror=mirror.name)
    if form.is_bound and form.is_valid() and _is_given(request, mirror, address, form):
        messages.success(request, f"{address} is waived: history may lack it, in all commits that hold it.")
        return redirect(f"{reverse('mirror_object', args=[mirror.name])}?{urlencode({'address': address})}")
    context = _context(request, mirror, address, things, waived, form)
    return render(request, "mirrors/object.html", context, status=_status(form))


def _status(form: ObjectWaiverForm) -> int:
    return getattr(form, "refused", 400) if form.is_bound else 200


def _is_given(request: HttpRequest, mirror: Mirror, address: str, form: ObjectWaiverForm) -> bool:
    try:
        waiver_give(actor=request.user, mirror=mirror, objects=[address], reason=form.cleaned_data["reason"])
    except LakeMirrorError as error:
        form.refused = int(status_of(error) or 500)
        form.add_error(None, str(error))
        return False
    return True


def _things(mirror: Mirror, address: str) -> list[Blocker]:
    return list(blockers_of(mirror, kind=Blocker.Kind.OBJECT, address=address).order_by("pk")) if address else []


def _waived(mirror: Mirror, address: str) -> WaivedObject | None:
    rows = WaivedObject.objects.filter(waiver__mirror=mirror, mirror=mirror, address=address)
    return rows.select_related("waiver").first()


def _context(
    request: HttpRequest,
    mirror: Mirror,
    address: str,
    things: list[Blocker],
    waived: WaivedObject | None,
    form: ObjectWaiverForm,
) -> dict[str, object]:
    impact, now = object_impact(mirror, {thing.holder_id for thing in things}), clock.now()
    return SECTION | {
        "mirror": mirror,
        "outages": outages_of(mirror, now),
        "address": address,
        "thing": things[0] if things else None,
        "path": things[0].path if things else waived.path if waived else "",
        "ranges": len(things),
        "impact": impact,
        "commits": impact.commits[:SHOWN],
        "waived": waived,
        "form": form,
        "refused": "" if waived else _why_not(mirror, address),
        "may_change": may_change(request, mirror),
        "may_operate": may_operate(request, mirror),
        "body": json.dumps({"objects": [address], "reason": "…"}, ensure_ascii=False),
        "now": now,
    }


def _why_not(mirror: Mirror, address: str) -> str:
    """What keeps it from being waived, if anything does."""
    try:
        waivable_objects(mirror, address)
    except LakeMirrorError as error:
        return str(error)
    return ""
