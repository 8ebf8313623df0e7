"""The replication API: how much is at risk at a mirror."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.states import ASIDE
from mirrors.api import find_mirror
from mirrors.breaches import Kept, target_of, targets_kept
from mirrors.models import LagBreach
from mirrors.paging import page_of, pagination
from mirrors.readings import BranchReading, MirrorReading, mirror_readings
from mirrors.serializers import rfc3339
from rbac import services as rbac


class Lag(APIView):
    """How late the branches of a mirror are, and how well they kept its target."""

    def get(self, request: Request, repository: str, mirror_id: str) -> Response:
        """A page of branches by name. Needs fs:ListRepositories on `*`."""
        rbac.require(request.user, ("fs:ListRepositories", "*"))
        amount, after = page_of(request)
        [reading] = mirror_readings([find_mirror(repository, mirror_id)])
        branches = [branch for branch in reading.branches if branch.name > after]
        more, branches = len(branches) > amount, branches[:amount]
        kept = targets_kept(reading.mirror, [branch.name for branch in branches], reading.as_of)
        told = pagination(len(branches), branches[-1].name if more else "")
        results = [_lag_json(branch, kept[branch.name], reading) for branch in branches]
        return Response(_about_lag(reading) | {"pagination": told, "results": results})


def _about_lag(reading: MirrorReading) -> dict[str, Any]:
    """What holds for all branches."""
    return {
        "rpo_seconds": reading.mirror.rpo_seconds,
        "target_seconds": int(target_of(reading.mirror).total_seconds()),
        "watched_since": rfc3339(reading.mirror.watched_since),
        "looked_at": rfc3339(reading.looked_at),
        "as_of": rfc3339(reading.as_of),
    }


def _lag_json(branch: BranchReading, kept: Kept, reading: MirrorReading) -> dict[str, Any]:
    """A branch that is gone at the source, or not mirrored, has no target to keep."""
    counts = branch.state not in ASIDE
    share = kept.share if counts else None
    return {
        "branch": branch.name,
        "status": branch.state.word,
        "lag_seconds": None if branch.lag is None else round(branch.lag, 3),
        "pending_commits": branch.pending,
        "oldest_pending_seen_at": rfc3339(branch.seen_at),
        "attainment_30d": None if share is None else round(share, 6),
        "measured_since": rfc3339(kept.since) if counts else None,
        "breaches": [_breach_json(breach) for breach in kept.breaches],
    }


def _breach_json(breach: LagBreach) -> dict[str, Any]:
    """`ended_at` is null while it lasts."""
    return {"began_at": rfc3339(breach.began_at), "ended_at": rfc3339(breach.ended_at)}
