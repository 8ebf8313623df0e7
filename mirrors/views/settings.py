"""The settings of a mirror on its page: seen by all who see it, changed by those who may."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from core.access.policies import repository_arn
from core.errors import LakeMirrorError, Stale
from core.installations.webhook_action import ACTION_FILE, SECRET_VARIABLE
from core.mirroring.branch_selection import OnUnselect
from core.mirroring.check_cost import Recheck, rechecks
from core.mirroring.object_check import Depth
from core.text.phrases import count
from deployment import config
from mirrors.models import Mirror
from mirrors.preflight.branch_matches import known_matches
from mirrors.preflight.standing import asks_for_checks, standing_checks, switched_on, verdict_of
from mirrors.queries.coverage import looked_for
from mirrors.services import settings
from mirrors.services.webhook_file import webhook_file
from mirrors.status.mirror import mirror_statuses
from mirrors.views.settings_form import DEPTHS, SettingsForm
from mirrors.views.tabs import find_visible, may_change, may_operate, may_see, show_tab
from rbac import services as rbac
from rbac.signin.form_recovery import GIVEN_BACK, keeps_typed, take
from web.errors import status_of
from web.etags import Seen
from web.forms import lines

NAMED = 5
MATCHES = "matches"


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@may_see
@keeps_typed
def mirror_settings(request: HttpRequest, name: str) -> HttpResponse:
    """The form of a mirror's settings, and the file by which its source tells of changes."""
    mirror = find_visible(request, name)
    if request.htmx.target == MATCHES:
        return render(request, "mirrors/_matches.html", _matches(mirror, SettingsForm(request.POST)))
    if request.method != "POST":
        given = take(request)
        if given is not None:
            return _give_back(request, mirror, SettingsForm(given))
        return _show(request, mirror, SettingsForm.of(mirror), **_checked(request, mirror))
    rbac.require(request.user, ("fs:MirrorRepository", repository_arn(mirror.source.name)))
    form = SettingsForm(request.POST)
    if not form.is_valid() or not _check_on_unselect(form, mirror):
        return _show(request, mirror, form, status=400)
    return _save(request, mirror, form)


def _check_on_unselect(form: SettingsForm, mirror: Mirror) -> bool:
    """Whether it is said what becomes of the branches that fall out, if any do."""
    if form.cleaned_data["on_unselect"]:
        return True
    names = form.falling_out(mirror)
    if names:
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        listed = ", ".join(names[:NAMED]) + more
        message = f"{count(len(names), 'branch', 'branches')} would no longer be mirrored: {listed}"
        form.add_error("on_unselect", message)
    return not names


def _save(request: HttpRequest, mirror: Mirror, form: SettingsForm) -> HttpResponse:
    try:
        changed = settings.mirror_update(
            actor=request.user,
            mirror=mirror,
            changes=form.changes,
            on_unselect=OnUnselect(form.cleaned_data["on_unselect"] or OnUnselect.KEEP),
            seen=Seen(frozenset({form.cleaned_data["seen"]})),
        )
    except Stale:
        mirror = find_visible(request, mirror.name)
        fresh, changed = form.over(mirror)
        return _show(request, mirror, fresh, status=412, changed=changed, stale=True)
    except LakeMirrorError as error:
        form.refuse(error)
        return _show(request, mirror, form, status=int(status_of(error) or 500))
    messages.success(request, "Settings saved, applying.")
    address = reverse("mirror_settings", args=[mirror.name])
    return redirect(f"{address}?check=1#checks" if switched_on(mirror, changed) else address)


def _give_back(request: HttpRequest, mirror: Mirror, form: SettingsForm) -> HttpResponse:
    """The form with what was typed when the session ended; somebody may have changed the settings since."""
    messages.info(request, GIVEN_BACK)
    fresh, changed = form.over(mirror)
    return _show(request, mirror, fresh, changed=changed, stale=bool(changed), unsaved=True)


def _show(request: HttpRequest, mirror: Mirror, form: SettingsForm, status: int = 200, **more: Any) -> HttpResponse:
    changer = may_change(request, mirror)
    context = {
        "form": form,
        "may_change": changer,
        "arn": repository_arn(mirror.source.name),
        "rechecks": _rechecks(mirror) if changer else [],
        "action_file": ACTION_FILE,
        "webhook": _webhook(request, mirror),
        "secret_variable": SECRET_VARIABLE,
        "asks_for_checks": asks_for_checks(mirror),
        "may_check": changer or may_operate(request, mirror),
        "hook_secret": config.current().hook_secret(mirror.source.region) if changer else "",
        **_matches(mirror, form),
        **more,
    }
    return show_tab(request, mirror_statuses([mirror])[0], "mirror_settings", context, status=status)


def _checked(request: HttpRequest, mirror: Mirror) -> dict[str, Any]:
    """What its settings ask for, looked at now: where somebody who may run or change it wants that. Not with each poll,
    which leaves the form and what is below it as they are."""
    wanted = "check" in request.GET and not request.htmx and asks_for_checks(mirror)
    may = may_change(request, mirror) or may_operate(request, mirror)
    if not (wanted and may):
        return {}
    found = standing_checks(mirror)
    return {"summary": found, "verdict": verdict_of(found)}


def _rechecks(mirror: Mirror) -> list[tuple[str, Recheck]]:
    """What each deeper depth has checked again, with its words; nothing while nothing was checked."""
    looked = looked_for(mirror)
    if not looked.ranges:
        return []
    found = rechecks(
        Depth(mirror.depth),
        ranges=looked.ranges,
        objects=looked.objects,
        size=looked.bytes,
        content_sample=mirror.content_sample,
    )
    words = dict(DEPTHS)
    return [(words[recheck.depth], recheck) for recheck in found]


def _matches(mirror: Mirror, form: SettingsForm) -> dict[str, Any]:
    """Which of the branches that were seen at the source the globs choose, and what may be meant otherwise."""
    include, exclude = (lines(str(form[name].value() or "")) for name in ("include", "exclude"))
    shared = {"matches_url": reverse("mirror_settings", args=[mirror.name]), "matches_form": "settings-form"}
    try:
        return shared | {"matches": known_matches(mirror.source, include, exclude)}
    except LakeMirrorError as error:
        return shared | {"matches_refused": str(error)}


def _webhook(request: HttpRequest, mirror: Mirror) -> str:
    """The file's text; "" where the region is no longer configured."""
    try:
        return webhook_file(mirror.source.region, request.build_absolute_uri("/"))
    except LakeMirrorError:
        return ""
