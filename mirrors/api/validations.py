"""The replication API: checks on demand."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.errors import NotFound
from core.mirroring.object_check import Depth
from jobs.job_ids import JobType, accepted, job_url
from mirrors.api.mirrors import find_mirror, find_visible
from mirrors.models import Validation
from mirrors.services.rights import require_operation_of
from mirrors.services.validations import validation_ask
from web.openapi import answers
from web.paging import PAGE, newest_first
from web.schemas import LOCATION, page_answer, text_or_null, time_or_null
from web.serializers import Body, rfc3339


class ValidationAsked(Body):
    """The body of POST: a commit, a branch or all, and how deep."""

    commit = serializers.RegexField(r"^[0-9a-f]{64}\Z", required=False)
    branch = serializers.CharField(max_length=256, required=False)
    all = serializers.BooleanField(required=False)
    depth = serializers.ChoiceField(choices=[depth.value for depth in Depth], required=False)

    def validate_all(self, value: bool) -> bool:
        """Only true says something."""
        if not value:
            raise serializers.ValidationError("must be true or left out")
        return value

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        super().validate(attrs)
        if len(attrs.keys() & {"commit", "branch", "all"}) != 1:
            raise serializers.ValidationError({"commit": "give one of commit, branch and all"})
        return attrs


class ValidationAnswer(serializers.Serializer):
    """A check on demand. `ranges` counts those of the metaranges that were read so far."""

    id = serializers.IntegerField()
    job = serializers.CharField(help_text="where it can be followed, among all jobs")
    what = serializers.CharField()
    commit = text_or_null()
    branch = text_or_null()
    depth = serializers.CharField()
    state = serializers.CharField(help_text="queued, running, retrying or done")
    ranges = serializers.IntegerField()
    ranges_done = serializers.IntegerField()
    metaranges_left = serializers.IntegerField()
    entries = serializers.IntegerField()
    problems = serializers.IntegerField()
    error = serializers.CharField(allow_blank=True)
    asked_by = serializers.CharField()
    asked_at = serializers.DateTimeField()
    started_at = time_or_null()
    ended_at = time_or_null()


class Validate(APIView):
    """Have everything looked at again that a commit, a branch's head, or all heads name."""

    tag = "validations"

    @answers("Validate a mirror", 202, ValidationAnswer, body=ValidationAsked, query=[LOCATION])
    def post(self, request: Request, repository: str, mirror_id: str) -> Response:
        """202 with the job; the one that is open for the same, if any. Needs fs:OperateMirror on the source or the
        mirror."""
        require_operation_of(request.user, repository, mirror_id)
        body = ValidationAsked(data=request.data)
        body.is_valid(raise_exception=True)
        wanted = body.validated_data
        validation = validation_ask(
            actor=request.user,
            mirror=find_mirror(repository, mirror_id),
            commit=wanted.get("commit", ""),
            branch=wanted.get("branch", ""),
            depth=Depth(wanted["depth"]) if "depth" in wanted else None,
        )
        answer = validation_json(validation)
        return accepted(answer, answer["job"])


class Validations(APIView):
    """The checks that were asked for at a mirror."""

    tag = "validations"

    @answers("List validations", 200, page_answer(ValidationAnswer), query=PAGE)
    def get(self, request: Request, repository: str, mirror_id: str) -> Response:
        """A page of them, the last one first. Needs fs:ListRepositories on `*`, or fs:ReadRepository on the mirror."""
        rows = find_visible(request, repository, mirror_id).validations
        return Response(newest_first(request, rows, validation_json))


class ValidationDetail(APIView):
    """One check on demand: how far it is, what it found."""

    tag = "validations"

    @answers("Get a validation", 200, ValidationAnswer)
    def get(self, request: Request, repository: str, mirror_id: str, job: int) -> Response:
        """The job. Needs fs:ListRepositories on `*`, or fs:ReadRepository on the mirror."""
        mirror = find_visible(request, repository, mirror_id)
        validation = mirror.validations.filter(pk=job).first() if job < 10**18 else None
        if validation is None:
            raise NotFound(f"there is no validation {str(job)[:40]} of '{mirror.name}'")
        return Response(validation_json(validation))


def validation_json(validation: Validation) -> dict[str, Any]:
    """A check on demand. `ranges` counts those of the metaranges that were read so far."""
    return {
        "id": validation.pk,
        "job": job_url(JobType.VALIDATION, validation.pk),
        "what": validation.what,
        "commit": validation.commit or None,
        "branch": validation.branch or None,
        "depth": validation.depth,
        "state": validation.state,
        "ranges": validation.ranges,
        "ranges_done": validation.ranges_done,
        "metaranges_left": len(validation.metaranges),
        "entries": validation.entries,
        "problems": validation.problems,
        "error": validation.error,
        "asked_by": validation.asked_by,
        "asked_at": rfc3339(validation.asked_at),
        "started_at": rfc3339(validation.started_at),
        "ended_at": rfc3339(validation.ended_at),
    }
