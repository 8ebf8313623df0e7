"""`/healthz`: this process answers. `/readyz`: it can do its work. `/version`: which one it is.

Until the tables are there every other address answers 503: whoever comes while they are still being made is told so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from http import HTTPStatus

from django.conf import settings
from django.db import Error, connection
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.views.decorators.http import require_safe

from db import tables
from lakemirror import __version__
from lakemirror_site.error_pages import error_answer

log = logging.getLogger("lakemirror.health")

PROBE_HOST = "probe.invalid"
PROBED = (*settings.ANSWERED_WITHOUT_DATABASE, "/metrics")
AGAIN_SECONDS = 3
NOT_YET = "the database is being prepared for this version of LakeMirror: try again in a moment"


class AnyHostForProbes:
    """Middleware: who watches a process comes by its address, which is none of `web.allowed_hosts`."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path in PROBED:
            request.META["HTTP_HOST"] = PROBE_HOST
        return self.get_response(request)


class NothingBeforeTheTables:
    """Middleware: nobody is answered from a database that is still being made, or is still an older version's.

    503 with Retry-After, and a page loads itself again. A database that doesn't answer is not its affair: what a
    request needs of it fails as at any other time.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path in settings.ANSWERED_WITHOUT_DATABASE or not _known_to_be_missing():
            return self.get_response(request)
        answer = error_answer(request, HTTPStatus.SERVICE_UNAVAILABLE, NOT_YET)
        answer["Retry-After"] = str(AGAIN_SECONDS)
        if request.method == "GET":
            answer["Refresh"] = str(AGAIN_SECONDS)
        answer._has_been_logged = True  # Django's mark: the watch has said so once, and once is enough
        return answer


def _known_to_be_missing() -> bool:
    try:
        return tables.watch.missing() > 0
    except Error:
        return False


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """200 as long as the process serves requests; asks nothing else."""
    return JsonResponse({"status": "ok"})


@require_safe
def version(request: HttpRequest) -> JsonResponse:
    """Which LakeMirror this is."""
    return JsonResponse({"version": __version__})


@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when the database answers and its tables are up to date, else 503 and why."""
    if problem := _database_problem():
        return JsonResponse({"status": "unavailable", "message": problem}, status=503)
    return JsonResponse({"status": "ok"})


def _database_problem() -> str:
    """What keeps the database from serving, or ""."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        missing = tables.watch.missing()
    except Error as error:
        log.warning("the database doesn't answer: %s", error)
        return "the database doesn't answer; see the log of this process"
    return f"{missing} migrations are not applied: run manage.py migrate" if missing else ""
