"""What the pages of one mirror share: finding it, its tabs, and how a click is answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import wraps
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse

from core.access.mirror_rights import to_approve
from core.access.policies import ALL, auth_arn, repository_arn
from mirrors.models import Mirror
from mirrors.services import rights
from mirrors.services.rights import require_sight, require_sight_of
from mirrors.status.incidents import trouble_of
from mirrors.status.mirror import MirrorStatus
from mirrors.status.replication import replicating
from mirrors.status.root_causes import RootCause, outages_in, untold_outages
from rbac import services as rbac
from rbac.signin.views import View
from web.pages import answered, whole_or_part

SECTION = {"section": "mirrors"}
SWEEPS = "mirror_sweeps"
TABS = (
    ("mirror", "Branches"),
    ("mirror_commits", "Commits"),
    ("mirror_backlog", "Backlog"),
    ("mirror_runs", "Runs"),
    ("mirror_held", "Held merges"),
    (SWEEPS, "Sweeps"),
    ("mirror_metrics", "Metrics"),
    ("mirror_settings", "Settings"),
    ("mirror_audit", "Audit"),
)
"""The name of each address, and what stands on the tab."""


def may_see(view: View) -> View:
    """Let a view run only for users who may see some mirror; others get NotSignedIn or Denied."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        require_sight(request.user, kwargs.get("name", ""))
        return view(request, *args, **kwargs)

    return guarded


def find_visible(request: HttpRequest, name: str) -> Mirror:
    """The mirror of that name. Raises Denied for who may not see it, whether it is there or not, and Http404."""
    require_sight_of(request.user, name)
    mirror = Mirror.objects.visible_to(request.user).select_related("source", "created_by").filter(name=name).first()
    if mirror is None:
        raise Http404(f"no mirror {name}")
    return mirror


def outages_of(mirror: Mirror, now: datetime) -> list[RootCause]:
    """Those in the two regions of a mirror, as a page below its own tells of them."""
    return outages_in((mirror.source.region, mirror.region), now)


def may_change(request: HttpRequest, mirror: Mirror) -> bool:
    """Whether the user may change it."""
    return rbac.allowed(request.user, "fs:MirrorRepository", repository_arn(mirror.source.name))


def may_operate(request: HttpRequest, mirror: Mirror) -> bool:
    """Whether the user may have it paused, looked at, checked."""
    return rights.may_operate(request.user, mirror)


def may_approve(request: HttpRequest, mirror: Mirror) -> bool:
    """Whether the user decides about what a sweep would delete."""
    return rbac.allowed(request.user, *to_approve(mirror.name))


def may_give_access(user: Any, name: str) -> bool:
    """Whether they may create the policy by which others see the mirror of this name."""
    return rbac.allowed(user, "auth:ListPolicies", ALL) and rbac.allowed(
        user, "auth:CreatePolicy", auth_arn("policy", f"View-{name}")
    )


def show_tab(
    request: HttpRequest, reading: MirrorStatus, tab: str, context: Mapping[str, Any], status: int = 200
) -> HttpResponse:
    """A mirror's page with one of its tabs, whose template is named for it."""
    shared = SECTION | {"mirror": reading.mirror, "reading": reading, "tab": tab}
    shared["tabs"] = [one for one in TABS if one[0] != SWEEPS or reading.mirror.follow_gc or tab == SWEEPS]
    shared["may_change"] = may_change(request, reading.mirror)
    shared["may_operate"] = may_operate(request, reading.mirror)
    shared["may_delete"] = rbac.allowed(request.user, "fs:DeleteRepository", repository_arn(reading.mirror.name))
    shared["may_give"] = may_give_access(request.user, reading.mirror.name)
    shared["trouble"] = trouble_of(reading)
    shared["outages"] = untold_outages(reading)
    shared["replicating"] = replicating(reading.mirror) if reading.waiting else None  # it was told some time ago
    shared["bringing"] = reading.bringing
    shared["part"] = f"mirrors/_tab_{dict(TABS)[tab].lower().replace(' ', '_')}.html"
    template = whole_or_part(request, "mirrors/detail.html", "mirrors/_detail.html")
    return render(request, template, {**shared, **context}, status=status)


def carry_out(
    request: HttpRequest, mirror: Mirror, verb: Callable[[], object], message: str | Callable[[Any], str]
) -> HttpResponse:
    """Carry out a verb of a mirror, and lead back to it; see `answered`."""
    return answered(request, verb, message, reverse("mirror", args=[mirror.name]))
