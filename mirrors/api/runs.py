"""The replication API: the checks of a mirror, mostly Spark jobs, and how they went."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.errors import NotFound
from db import clock
from mirrors.api.mirrors import find_visible
from mirrors.models import Run
from mirrors.status.runs import is_held, run_status
from web.openapi import answers
from web.paging import PAGE, newest_first
from web.schemas import number_or_null, page_answer, text_or_null, time_or_null
from web.serializers import rfc3339


class RunAnswer(serializers.Serializer):
    """A check of ranges. `outcome` is null when its worker is lost."""

    id = serializers.IntegerField()
    job = serializers.CharField()
    outcome = text_or_null()
    error = text_or_null()
    started_at = serializers.DateTimeField()
    ended_at = time_or_null()
    seconds = number_or_null()
    ranges = serializers.IntegerField()
    ranges_done = serializers.IntegerField()
    entries = serializers.IntegerField()
    looked_up = serializers.IntegerField(help_text="objects that no earlier check covered")
    requests = serializers.IntegerField()
    problems = serializers.IntegerField()
    lacking = serializers.IntegerField(help_text="missing objects that it was to copy")
    copied = serializers.IntegerField(help_text="those of them that it copied")
    copied_bytes = serializers.IntegerField()
    entries_per_second = number_or_null()
    eta = time_or_null()


class RunDetailAnswer(RunAnswer):
    """A check of ranges, as it stands at a moment."""

    as_of = serializers.DateTimeField()


class Runs(APIView):
    """The checks of a mirror."""

    tag = "runs"

    @answers("List runs", 200, page_answer(RunAnswer), query=PAGE)
    def get(self, request: Request, repository: str, mirror_id: str) -> Response:
        """A page of them, the last one first. Needs fs:ListRepositories on `*`, or fs:ReadRepository on the mirror."""
        mirror, now = find_visible(request, repository, mirror_id), clock.now()
        to_json = partial(run_json, now=now, held=is_held(mirror, now))
        return Response(newest_first(request, mirror.runs, to_json))


class RunDetail(APIView):
    """One check: how far it is, how fast it goes, what it found."""

    tag = "runs"

    @answers("Get a run", 200, RunDetailAnswer)
    def get(self, request: Request, repository: str, mirror_id: str, number: int) -> Response:
        """The check. Needs fs:ListRepositories on `*`, or fs:ReadRepository on the mirror."""
        mirror, now = find_visible(request, repository, mirror_id), clock.now()
        run = mirror.runs.filter(pk=number).first() if number < 10**18 else None
        if run is None:
            raise NotFound(f"there is no run {str(number)[:40]} of '{mirror.name}'")
        return Response(run_json(run, now=now, held=is_held(mirror, now)) | {"as_of": rfc3339(now)})


def run_json(run: Run, *, now: datetime, held: bool) -> dict[str, Any]:
    """A check. One that has no end is running only while the mirror's validation is `held`: else its worker is lost."""
    status = run_status(run, now=now, held=held)
    return {
        "id": run.pk,
        "job": run.job,
        "outcome": None if status.lost else run.outcome,
        "error": run.error or None,
        "started_at": rfc3339(run.started_at),
        "ended_at": rfc3339(run.ended_at),
        "seconds": _rounded(status.seconds),
        "ranges": run.ranges,
        "ranges_done": run.ranges_done,
        "entries": run.entries,
        "looked_up": run.looked_up,
        "requests": run.requests,
        "problems": run.problems,
        "lacking": run.lacking,
        "copied": run.copied,
        "copied_bytes": run.copied_bytes,
        "entries_per_second": _rounded(status.rate),
        "eta": rfc3339(status.eta),
    }


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 3)
