"""The replication API: what LakeMirror copies for a mirror now, and steering it while it goes on."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.bringing import ObjectReplication
from db import clock
from mirrors.api.mirrors import find_mirror, find_visible
from mirrors.api.schemas import BringingAnswer
from mirrors.api.serializers import CopyLimits
from mirrors.models import Mirror, Run
from mirrors.services.rights import require_operation_of
from mirrors.services.settings import copying_update
from mirrors.status.copying import Going, Lane, going_on, on_request_json
from web.openapi import answers
from web.schemas import number_or_null, time_or_null
from web.serializers import rfc3339


class LimitsAnswer(serializers.Serializer):
    """How much is copied at most; null: any number."""

    workers = serializers.IntegerField(help_text="objects at once")
    bytes_per_second = serializers.IntegerField(allow_null=True)
    objects_per_second = serializers.IntegerField(allow_null=True)


class LaneAnswer(serializers.Serializer):
    """Objects of one size. They have lanes of their own, so that large ones keep no small ones waiting."""

    lane = serializers.ChoiceField(choices=Run.LANES, help_text="`large`: of more than 8 MiB")
    lacking = serializers.IntegerField(help_text="objects that were found missing so far")
    waiting = serializers.IntegerField(help_text="those of them that have not had their turn")
    in_flight = serializers.IntegerField(help_text="those that are copied at this moment")
    copied = serializers.IntegerField()
    failed = serializers.IntegerField(
        help_text="those that had their turn and were not copied: for want of time, or for the reason that their "
        "blocker tells"
    )


class GoingAnswer(serializers.Serializer):
    """The run at work, which copies for 30 seconds at most; the next one finds what it left."""

    run = serializers.IntegerField()
    started_at = serializers.DateTimeField()
    lacking = serializers.IntegerField()
    copied = serializers.IntegerField()
    copied_bytes = serializers.IntegerField()
    left = serializers.IntegerField()
    in_flight = serializers.IntegerField()
    objects_per_second = number_or_null()
    bytes_per_second = number_or_null()
    eta = time_or_null()
    lanes = LaneAnswer(many=True)


class CopyingAnswer(serializers.Serializer):
    """How the objects of a mirror are copied, and what is copied now; `now` is null while nothing is."""

    object_replication = serializers.ChoiceField(choices=[choice.value for choice in ObjectReplication])
    paused = serializers.BooleanField(help_text="of a managed mirror: nothing is copied until it is resumed")
    limits = LimitsAnswer()
    copied_objects = serializers.IntegerField(help_text="since there is the mirror")
    copied_bytes = serializers.IntegerField()
    now = GoingAnswer(allow_null=True)
    bringing = BringingAnswer(
        allow_null=True, help_text="of a native mirror: what somebody had LakeMirror copy in place of the stores"
    )
    as_of = serializers.DateTimeField()


class Copying(APIView):
    """What is copied now."""

    tag = "copying"

    @answers("Get what is copied", 200, CopyingAnswer)
    def get(self, request: Request, repository: str, mirror_id: str) -> Response:
        """Lanes, pace, what is in flight and what is left. Needs fs:ListRepositories on `*`, or fs:ReadRepository on
        the mirror."""
        return Response(copying_json(find_visible(request, repository, mirror_id)))


class CopyingPause(APIView):
    """Copy nothing more; checks and promotion go on."""

    tag = "copying"

    @answers("Pause copying", 200, CopyingAnswer, fails=[409])
    def post(self, request: Request, repository: str, mirror_id: str) -> Response:
        """Objects in flight are copied to their end, none are begun within 10 s from now. 409 for a mirror whose
        objects the stores copy. Needs fs:OperateMirror on its source or on itself."""
        return _steer(request, repository, mirror_id, {"copying_paused": True})


class CopyingResume(APIView):
    """Go on copying."""

    tag = "copying"

    @answers("Resume copying", 200, CopyingAnswer, fails=[409])
    def post(self, request: Request, repository: str, mirror_id: str) -> Response:
        """What is missing is copied from now on. 409 for a mirror whose objects the stores copy. Needs
        fs:OperateMirror on its source or on itself."""
        return _steer(request, repository, mirror_id, {"copying_paused": False})


class CopyingLimits(APIView):
    """Copy faster or slower."""

    tag = "copying"

    @answers("Limit copying", 200, CopyingAnswer, body=CopyLimits, fails=[409])
    def post(self, request: Request, repository: str, mirror_id: str) -> Response:
        """The limits that the body names, null for none; they hold within 10 s. 409 for a mirror whose objects the
        stores copy. Needs fs:OperateMirror on its source or on itself."""
        require_operation_of(request.user, repository, mirror_id)
        body = CopyLimits(data=request.data)
        body.is_valid(raise_exception=True)
        if not body.validated_data:
            raise serializers.ValidationError({"workers": "give workers, bytes_per_second or objects_per_second"})
        return _steer(request, repository, mirror_id, body.validated_data)


def _steer(request: Request, repository: str, mirror_id: str, changes: dict[str, Any]) -> Response:
    require_operation_of(request.user, repository, mirror_id)
    mirror = find_mirror(repository, mirror_id)
    return Response(copying_json(copying_update(actor=request.user, mirror=mirror, changes=changes)))


def copying_json(mirror: Mirror) -> dict[str, Any]:
    """As CopyingAnswer says."""
    now = clock.now()
    managed = mirror.object_replication == ObjectReplication.MANAGED
    going = going_on(mirror, now) if managed else None
    return {
        "object_replication": mirror.object_replication,
        "paused": managed and mirror.copying_paused,
        "limits": {
            "workers": mirror.copy_workers,
            "bytes_per_second": mirror.copy_bytes_per_second,
            "objects_per_second": mirror.copy_objects_per_second,
        },
        "copied_objects": mirror.copied,
        "copied_bytes": mirror.copied_bytes,
        "now": _going_json(going) if going else None,
        "bringing": on_request_json(mirror, now),
        "as_of": rfc3339(now),
    }


def _going_json(going: Going) -> dict[str, Any]:
    run = going.run
    return {
        "run": run.pk,
        "started_at": rfc3339(run.started_at),
        "lacking": run.lacking,
        "copied": run.copied,
        "copied_bytes": run.copied_bytes,
        "left": going.left,
        "in_flight": going.in_flight,
        "objects_per_second": _rounded(going.objects_per_second),
        "bytes_per_second": _rounded(going.bytes_per_second),
        "eta": rfc3339(going.ends_at),
        "lanes": [_lane_json(lane) for lane in going.lanes],
    }


def _lane_json(lane: Lane) -> dict[str, Any]:
    counts = ("lacking", "waiting", "in_flight", "copied", "failed")
    return {"lane": lane.name} | {name: getattr(lane, name) for name in counts}


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 3)
