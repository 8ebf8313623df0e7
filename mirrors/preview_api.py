"""The replication API: what a mirror would cost."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from core.estimate import Cost
from mirrors import clock, services
from mirrors.api import MirrorDetail, creation_asked
from mirrors.preview import Preview, preview_of
from mirrors.serializers import rfc3339


class MirrorPreview(MirrorDetail):
    """What a mirror would cost. To GET, PATCH and DELETE a mirror that is named `preview` is here as anywhere."""

    def post(self, request: Request, repository: str, mirror_id: str) -> Response:
        """The body of creation; needs what creation needs, and is refused as that is. Nothing is stored."""
        found = services.check_creation(actor=request.user, **creation_asked(request, repository))
        return Response(_preview_json(preview_of(found)))


def _preview_json(found: Preview) -> dict[str, Any]:
    """Bytes of objects are null: only ranges tell them, and these are not read."""
    return {
        "as_of": rfc3339(clock.now()),
        "branches": {"all": found.branches, "selected": found.selected, "at_least": not found.all_listed},
        "heads": {"all": found.heads, "read": found.read},
        "commits": {"number": found.commits, "at_least": True},
        "objects": found.entries,
        "bytes": None,
        "ranges": found.ranges,
        "metaranges": found.metaranges,
        "metadata_bytes": found.metadata_bytes,
        "at_least": found.at_least,
        "first_check": {"at_best": _cost_json(found.best), "at_worst": _cost_json(found.worst)},
        "not_counted": [
            "the time and the traffic of the bucket's replication",
            "objects that only older commits name",
            "the records of all commits, one request each to the destination's lakeFS",
        ],
        "warnings": list(found.warnings),
    }


def _cost_json(cost: Cost) -> dict[str, Any]:
    return {"get": cost.gets, "list": cost.lists, "head": cost.heads, "seconds": cost.seconds}
