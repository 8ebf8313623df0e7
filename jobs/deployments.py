"""The deployments that share the database: which work, for which regions, and whether they belong together."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models.functions import Now

from core.mirroring.rpo import in_words
from db import clock
from deployment import config
from jobs.models import Deployment

log = logging.getLogger("lakemirror.controller")

ANNOUNCE_SECONDS = 15.0
SILENT_AFTER = timedelta(seconds=60)
COMPARED_FOR = timedelta(days=1)
"""One that was not heard of for so long is none any more."""
_announced_at = float("-inf")
_logged: list[str] = []


def look_round() -> None:
    """By each controller: say that we are here, and log it where another deployment does not belong to us."""
    global _announced_at, _logged
    if time.monotonic() - _announced_at < ANNOUNCE_SECONDS:
        return
    _announced_at = time.monotonic()
    announce()
    found = disagreements()
    for one in found:
        if one not in _logged:
            log.error("%s", one)
    _logged = found


def announce() -> None:
    """Write down what this deployment is, and that it was here just now."""
    told = config.current()
    about = {
        "serves": list(told.served),
        "organization": told.organization_id,
        "key_digest": told.derived_key("deployments"),
        "seen_at": Now(),
    }
    Deployment.objects.update_or_create(region=told.region, defaults=about)


def working_for(region: str) -> Deployment | None:
    """The one that was heard of last of those that serve a region; None if there never was one."""
    known = Deployment.objects.order_by("-seen_at")
    return next((one for one in known if region in one.serves), None)


def silent_for(deployment: Deployment, now: datetime) -> str:
    """For how long nothing was heard of it, in words; "" if it was heard of lately."""
    silence = now - deployment.seen_at
    return in_words(silence.total_seconds()) if silence > SILENT_AFTER else ""


def disagreements() -> list[str]:
    """What other deployments on this database are told otherwise, and must not be: a sentence each, with what to do."""
    told = config.current()
    others = Deployment.objects.exclude(region=told.region).filter(seen_at__gt=clock.now() - COMPARED_FOR)
    return [text for other in others.order_by("region") for text in _differing(told, other)]


def _differing(told: config.Config, other: Deployment) -> Iterator[str]:
    own = f"The deployments of {told.region} and {other.region} differ in"
    if other.organization != told.organization_id:
        yield f"{own} organization_id: mirrors of one organization name two. Give both the same."
    if other.key_digest != told.derived_key("deployments"):
        yield f"{own} auth.encrypt.secret_key: what one signs or seals, the other can't read. Give both the same."
