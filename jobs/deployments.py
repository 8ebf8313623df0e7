"""The deployments that share the database: which work, for which regions, and whether they belong together."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models.functions import Now

from core.mirroring.rpo import in_words
from db import clock
from deployment import config
from jobs.models import Deployment

log = logging.getLogger("lakemirror.controller")

SILENT_AFTER = timedelta(seconds=60)
COMPARED_FOR = timedelta(minutes=10)
"""One that was not heard of for so long is not at work any more, or is told otherwise by now."""
_logged: list[str] = []


def look_round() -> None:
    """By each controller: say that we are here, and log it where another deployment does not belong to us."""
    global _logged
    announce()
    found = disagreements()
    for one in found:
        if one not in _logged:
            log.error("%s", one)
    _logged = found


def announce() -> None:
    """Write down what this deployment is, and that it was here just now. What was not heard of for a week goes."""
    about = _about(config.current())
    Deployment.objects.update_or_create(identity=about["identity"], defaults=about | {"seen_at": Now()})
    Deployment.objects.filter(seen_at__lt=clock.now() - timedelta(days=7)).delete()


def _about(told: config.Config) -> dict[str, Any]:
    about = {
        "region": told.region,
        "serves": list(told.served),
        "organization": _digest(told.organization_id),
        "key": _digest(told.derived_key("deployments")),
    }
    return about | {"identity": _digest(json.dumps(about))}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def own() -> Deployment | None:
    """The row of this deployment; None before its controller was there."""
    return Deployment.objects.filter(identity=_about(config.current())["identity"]).first()


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
    own = _about(told)
    others = Deployment.objects.exclude(identity=own["identity"]).filter(seen_at__gt=clock.now() - COMPARED_FOR)
    return sorted({text for other in others for text in _differing(told.region, own, other)})


def _differing(region: str, own: Mapping[str, Any], other: Deployment) -> Iterator[str]:
    whose = (
        f"Two deployments of {region}" if other.region == region else f"The deployments of {region} and {other.region}"
    )
    if other.organization != own["organization"]:
        yield f"{whose} differ in organization_id. Use the same in both."
    if other.key != own["key"]:
        sealed = "what one signs or encrypts, the other can't read"
        yield f"{whose} differ in auth.encrypt.secret_key: {sealed}. Use the same in both."
