"""What a run leaves at the status path after its manifest: a status for programs, last the status file of old.

What the latter says is noted with the run that wrote it last.
"""

from __future__ import annotations

import json
import re
from datetime import datetime

from django.db.models import QuerySet

from adapters.s3.store import split_uri
from core.errors import Denied, NotFound
from core.exporting.destinations import status_uri, timed_uris
from core.exporting.state_machine import State, status_text
from db import clock
from deployment.wiring import clients
from exports.engine import manifests
from exports.engine.run_io import Plane
from exports.models import Export, ExportRun
from web.serializers import rfc3339

JSON, TEXT = "application/json", "text/plain; charset=utf-8"
_COMMIT = re.compile("[0-9a-f]{64}")


def write_status(run: ExportRun, plane: Plane, state: State, errors: int, at: datetime) -> None:
    """Tell at the status path what came of a run: the file for programs first, the one that people wait for last."""
    if not run.status_path:
        return
    _write_report(run, plane, state, errors, at)
    _write_file_of_old(run, plane, status_text(state, errors))
    ExportRun.objects.filter(pk=run.pk).update(told=status_text(state, errors), told_path=run.status_path)


def tell_begun(run: ExportRun, plane: Plane) -> None:
    """Before the first file changes the newest status says so."""
    if run.status_path:
        _write_report(run, plane, State.IN_PROGRESS, 0, clock.now())


def _write_report(run: ExportRun, plane: Plane, state: State, errors: int, at: datetime) -> None:
    export = run.export
    timed = timed_uris(run.status_path, export.repository, export.branch, run.started_at)
    last = manifests.newest(run)
    report = {
        "status": state,
        "commit_id": run.ref,
        "message": run.message,
        "repository": export.repository,
        "branch": export.branch,
        "name": export.name or None,
        "export_path": run.path,
        "signalled_errors": errors,
        "manifest": timed.manifest if state is State.SUCCESS and run.listed is not False else None,
        "last_manifest": last and {"uri": last.uri, "commit_id": last.run.ref},
        "at": rfc3339(at),
    }
    plane.put(timed.status, (json.dumps(report, indent=2) + "\n").encode(), JSON)


def told_since(export: Export, at: datetime) -> list[str] | None:
    """The commits of runs that told at the status path to have begun to write at this export's place after `at`, the
    oldest first. None where nobody can tell: without a status path, or with a key that may not read there."""
    if not export.status_path:
        return None
    store = clients.export_store(export.region, export.status_path)
    first = timed_uris(export.status_path, export.repository, export.branch, at).status
    bucket, after = split_uri(first)
    folder, commits = first[: first.rindex("_STATUS_") + len("_STATUS_")], list[str]()
    try:
        more = True
        while more:
            page = store.page(folder, after)
            commits += filter(None, (_commit_told(export, store.get(f"s3://{bucket}/{key}")) for key in page.keys))
            more, after = page.more, page.keys[-1] if page.keys else after
    except (Denied, NotFound):
        return None
    return list(dict.fromkeys(commits))


def _commit_told(export: Export, text: bytes) -> str:
    """What a status for programs tells of this export's place; "" for that of another one, and for what is none."""
    try:
        told = json.loads(text)
    except ValueError:
        return ""
    if not isinstance(told, dict):
        return ""
    commit, whose = str(told.get("commit_id")), (told.get("name") or "", told.get("export_path"))
    return commit if whose == (export.name, export.path) and _COMMIT.fullmatch(commit) else ""


def take_back_success(run: ExportRun, plane: Plane) -> None:
    """Before files of the commit change that an earlier run told to be exported: its status file says so no more."""
    if run.status_path and _tells_success(run, plane):
        _write_file_of_old(run, plane, status_text(State.IN_PROGRESS, 0))


def _write_file_of_old(run: ExportRun, plane: Plane, text: str) -> None:
    """Nobody knows what it says before this is answered."""
    _of_same_file(run).update(told="", told_path="")
    plane.put(_file_of_old(run), text.encode(), TEXT)


def _tells_success(run: ExportRun, plane: Plane) -> bool:
    """By the file; who may not read it is told by what was written there."""
    told = f"status: {State.SUCCESS},"
    try:
        return plane.get(_file_of_old(run)).startswith(told.encode())
    except NotFound:
        return False
    except Denied:
        return _of_same_file(run).filter(told__startswith=told).exists()


def _file_of_old(run: ExportRun) -> str:
    return status_uri(run.status_path, run.export.repository, run.export.branch, run.ref)


def _of_same_file(run: ExportRun) -> QuerySet[ExportRun]:
    """Runs of the same commit that wrote to the same status path: there is one file for all of them."""
    return ExportRun.objects.filter(export=run.export_id, ref=run.ref, told_path=run.status_path)
