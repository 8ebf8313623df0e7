"""The replication API: sweeps of a mirror that follows its source's garbage collection, and who approves what they
delete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.sweeping import SHOWN, Candidate
from jobs.job_ids import accepted, duty_url
from mirrors.api.mirrors import find_mirror, find_visible
from mirrors.models import MirrorDuty, Sweep
from mirrors.services.rights import require_operation_of
from mirrors.services.sweeps.approval import find_sweep, require_approval, sweep_approve, sweep_reject
from mirrors.services.sweeps.asking import sweep_now
from mirrors.services.sweeps.lists import read_due
from web.csv_export import FORMATS, TableView, csv_answer, wants_csv
from web.openapi import answers
from web.paging import PAGE, newest_first
from web.schemas import LOCATION, JobTakenAnswer, page_answer, text_or_null, time_or_null
from web.serializers import rfc3339

COLUMNS = ("address", "size", "etag", "found_at")
FORMAT = OpenApiParameter("format", str, enum=FORMATS, description="csv: all objects of its list as a file")


class SweptObject(serializers.Serializer):
    """An object that nobody needs, and since when that is known."""

    address = serializers.CharField(help_text="below the mirror's namespace")
    size = serializers.IntegerField()
    etag = serializers.CharField()
    found_at = serializers.DateTimeField()


class SweepAnswer(serializers.Serializer):
    """A look through a mirror's namespace, and what became of what it found."""

    id = serializers.IntegerField()
    state = serializers.CharField(help_text=" or ".join(f"`{state}`" for state in Sweep.State.values))
    reason = text_or_null()
    began_at = serializers.DateTimeField()
    looked_at = time_or_null()
    ended_at = time_or_null()
    listed = serializers.IntegerField(help_text="objects in the namespace")
    listed_bytes = serializers.IntegerField()
    found = serializers.IntegerField(help_text="those that nobody names, and that are gone at the source")
    found_bytes = serializers.IntegerField()
    due = serializers.IntegerField(help_text="those of them that a sweep a week before found too: its list")
    due_bytes = serializers.IntegerField()
    deleted = serializers.IntegerField()
    deleted_bytes = serializers.IntegerField()
    spared = serializers.IntegerField(help_text="those of the list that came to be needed, or changed, since")
    locked = serializers.IntegerField(help_text="those of the list that an object lock keeps")
    refused = serializers.IntegerField(help_text="those of the list that the store did not delete")
    expires_at = time_or_null()
    decided_by = text_or_null()
    decided_at = time_or_null()


class SweepDetailAnswer(SweepAnswer):
    """The same with the beginning of its list."""

    objects = SweptObject(many=True, help_text=f"the first {SHOWN} of its list")


class Sweeps(APIView):
    """Sweeps of a mirror."""

    tag = "sweeps"

    @answers("List sweeps", 200, page_answer(SweepAnswer), query=PAGE)
    def get(self, request: Request, repository: str, mirror_id: str) -> Response:
        """A page of them, the last one first. Needs fs:ListRepositories on `*`, or fs:ReadRepository on the mirror."""
        mirror = find_visible(request, repository, mirror_id)
        return Response(newest_first(request, mirror.sweeps.all(), sweep_json))

    @answers("Sweep a mirror now", 202, JobTakenAnswer, query=[LOCATION], fails=[409])
    def post(self, request: Request, repository: str, mirror_id: str) -> Response:
        """202: its namespace is looked through now, and not when a week is over. What may be deleted stays as it is.
        409 where it makes no sweeps now, or one is not through yet. Needs fs:OperateMirror on the source or
        the mirror."""
        require_operation_of(request.user, repository, mirror_id)
        mirror = find_mirror(repository, mirror_id)
        sweep_now(actor=request.user, mirror=mirror)
        message = f"looking through {mirror.storage_namespace} now for what nobody needs"
        return accepted({"message": message}, duty_url(MirrorDuty.SWEEP, mirror.pk))


class SweepDetail(TableView):
    """One sweep, with the list of what it deletes."""

    tag = "sweeps"

    @answers("Get a sweep", 200, SweepDetailAnswer, query=[FORMAT], fails=[502, 503], csv=True)
    def get(self, request: Request, repository: str, mirror_id: str, sweep: int) -> HttpResponseBase:
        """The sweep with the first objects of its list; or all of them as CSV. Needs fs:ListRepositories on `*`, or
        fs:ReadRepository on the mirror."""
        mirror = find_visible(request, repository, mirror_id)
        row = find_sweep(mirror, sweep)
        listed: Sequence[Candidate] = read_due(mirror, row) if row.due else []
        if wants_csv(request):
            return csv_answer(f"{mirror.name}-sweep-{row.pk}", COLUMNS, map(object_json, listed))
        return Response(sweep_json(row) | {"objects": [object_json(one) for one in listed[:SHOWN]]})


class SweepApproved(APIView):
    """Let a sweep delete what is on its list."""

    tag = "sweeps"

    @answers("Approve a sweep", 200, SweepAnswer, fails=[409])
    def post(self, request: Request, repository: str, mirror_id: str, sweep: int) -> Response:
        """The sweep. What is on its list, and nothing else, is deleted, as far as nothing speaks for it then. 409 when
        it does not wait for approval, or has expired. Needs fs:ApproveMirrorDeletes on the mirror."""
        require_approval(request.user, mirror_id)
        mirror = find_mirror(repository, mirror_id)
        return Response(sweep_json(sweep_approve(actor=request.user, mirror=mirror, number=sweep)))


class SweepRejected(APIView):
    """Let a sweep delete nothing."""

    tag = "sweeps"

    @answers("Reject a sweep", 200, SweepAnswer, fails=[409])
    def post(self, request: Request, repository: str, mirror_id: str, sweep: int) -> Response:
        """The sweep. The next one, a week later, may ask again. 409 when it does not wait for approval. Needs
        fs:ApproveMirrorDeletes on the mirror."""
        require_approval(request.user, mirror_id)
        mirror = find_mirror(repository, mirror_id)
        return Response(sweep_json(sweep_reject(actor=request.user, mirror=mirror, number=sweep)))


_NUMBERS = (
    *("id", "state", "listed", "listed_bytes", "found", "found_bytes", "due", "due_bytes"),
    *("deleted", "deleted_bytes", "spared", "locked", "refused"),
)
_TIMES = ("began_at", "looked_at", "ended_at", "expires_at", "decided_at")


def sweep_json(sweep: Sweep) -> dict[str, Any]:
    """A sweep as the API gives it."""
    told = {name: getattr(sweep, name) for name in _NUMBERS}
    times = {name: rfc3339(getattr(sweep, name)) for name in _TIMES}
    return told | times | {"reason": sweep.reason or None, "decided_by": sweep.decided_by or None}


def object_json(one: Candidate) -> dict[str, Any]:
    """An object of a sweep's list."""
    return {"address": one.address, "size": one.size, "etag": one.etag, "found_at": rfc3339(one.found_at)}
