"""Which services of a mirror's two regions do not answer now."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from core.installations.outages import Outage, tell_outage
from core.mirroring.explain.outages import is_blinding
from installations import contact
from mirrors.models import Mirror
from web.serializers import rfc3339


def outages_by_mirror(mirrors: Collection[Mirror], now: datetime) -> Mapping[int, Sequence[Outage]]:
    """Those in the region of each mirror and in its source's, by the mirror's key; of most there are none. One query;
    the mirrors come with their sources."""
    known = contact.outages(now) if mirrors else []
    if not known:
        return {}
    return {
        mirror.pk: [outage for outage in known if outage.region in (mirror.source.region, mirror.region)]
        for mirror in mirrors
    }


def unreached(mirrors: Collection[Mirror], now: datetime) -> set[int]:
    """The keys of those of which nobody can know now whether they are as their source."""
    by_mirror = outages_by_mirror(mirrors, now)
    return {
        mirror.pk
        for mirror in mirrors
        for outage in by_mirror.get(mirror.pk, ())
        if is_blinding(outage, source_region=mirror.source.region, region=mirror.region)
    }


def outage_json(outage: Outage, now: datetime) -> dict[str, Any]:
    """An outage as the API gives it."""
    return {
        "region": outage.region,
        "service": outage.service.value,
        "status": outage.kind.value,
        "since": rfc3339(outage.since),
        "reason": str(tell_outage(outage, now)),
        "problem": outage.problem,
    }
