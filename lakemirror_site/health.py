"""`/healthz`: this process answers. `/readyz`: it can do its work. `/version`: which one it is."""

from __future__ import annotations

import logging
from collections.abc import Callable

from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.views.decorators.http import require_safe

from lakemirror import __version__

log = logging.getLogger("lakemirror.health")

# Looking is dear, and tables that were up to date stay so for this code.
_tables_seen = False


PROBE_HOST = "probe.invalid"
PROBED = ("/healthz", "/readyz", "/metrics", "/version")


class AnyHostForProbes:
    """Middleware: who watches a process comes by its address, which is none of `web.allowed_hosts`."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path in PROBED:
            request.META["HTTP_HOST"] = PROBE_HOST
        return self.get_response(request)


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
    global _tables_seen
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        pending = 0 if _tables_seen else _pending_migrations()
    except Error as error:
        log.warning("the database doesn't answer: %s", error)
        return "the database doesn't answer; the log of this process says why"
    _tables_seen = pending == 0
    return f"{pending} migrations are not applied: run manage.py migrate" if pending else ""


def _pending_migrations() -> int:
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
