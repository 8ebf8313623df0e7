"""`/healthz`: this process answers. `/readyz`: it can do its work."""

from __future__ import annotations

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse


def healthz(request: HttpRequest) -> JsonResponse:
    """200 as long as the process serves requests; asks nothing else."""
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> JsonResponse:
    """200 when the database answers and its tables are up to date, else 503 and why."""
    problem = _database_problem()
    if problem:
        return JsonResponse({"status": "unavailable", "message": problem}, status=503)
    return JsonResponse({"status": "ok"})


def _database_problem() -> str:
    """What keeps the database from serving, or ""."""
    try:
        executor = MigrationExecutor(connection)
        pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError as error:
        return f"the database doesn't answer: {error}"
    return f"{len(pending)} migrations are not applied: run manage.py migrate" if pending else ""
