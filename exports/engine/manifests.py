"""The manifest of a run: written when it is due, of a success alone; the last ones are kept, older ones of ours go."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain

from adapters.s3.multipart import Part, Uploads
from adapters.s3.store import split_uri
from adapters.s3.writes import Writer
from core.errors import LakeMirrorError, NotFound, RemoteFailure
from core.exporting import manifests
from core.exporting.deadline import Deadline, Late
from core.exporting.destinations import timed_uris
from core.exporting.unit_windows import ACTIONS
from db import clock
from deployment import config
from deployment.wiring import clients, export_jobs
from exports.engine.run_io import Plane
from exports.engine.source_commits import entries_of, ranges_of
from exports.engine.time_slice import Slice
from exports.models import ExportManifest, ExportRun
from graveler.metarange import RangeRef
from jobs.lease import Lease

log = logging.getLogger("lakemirror.export")

_DESCRIBED = {"content-type": "application/x-ndjson"}
PART_BYTES = 16 << 20
PARTS_SECONDS = 6 * 3600.0
"""So long parts of a manifest may be uploaded."""


def write(run: ExportRun, plane: Plane, lease: Lease) -> None:
    """Write the manifest if it is due, and note whether; then remove what is too old. Raises what keeps it from being
    written."""
    if run.listed is not None:
        return
    if not is_due(run):
        with lease.transaction():
            ExportRun.objects.filter(pk=run.pk).update(listed=False)
        return
    uri = address(run)
    _write(run, plane, lease, uri)
    info = plane.head(uri)
    if info is None:
        raise RemoteFailure(f"{uri} was written but is not there")
    with lease.transaction():
        ExportManifest.objects.update_or_create(
            run=run,
            defaults={
                "export": run.export,
                "uri": uri,
                "size": info.size,
                "etag": info.etag,
                "written_at": clock.now(),
            },
        )
        ExportRun.objects.filter(pk=run.pk).update(listed=True)
    _remove_old(run, plane)


def is_due(run: ExportRun) -> bool:
    """By the export's settings of now, and by when the last one was written at the run's status path."""
    if not run.status_path:
        return False
    last = next(iter(_at_status_path(run)), None)
    return manifests.is_due(run.export.manifest, last and last.written_at, clock.now())


def address(run: ExportRun) -> str:
    """Where a run's manifest lies."""
    export = run.export
    return timed_uris(run.status_path, export.repository, export.branch, run.started_at).manifest


def newest(run: ExportRun) -> ExportManifest | None:
    """The last one that was written at the run's status path, of this run or an earlier one."""
    return next(iter(_at_status_path(run)), None)


def _at_status_path(run: ExportRun) -> list[ExportManifest]:
    """The newest first; none of another status path that lies in this one."""
    rows = run.export.manifests.filter(run__lte=run.pk).select_related("run")
    return [row for row in rows if _folder(row.uri) == _folder(address(run))]


def _folder(uri: str) -> str:
    return uri.rpartition("/")[0]


# --- written ----------------------------------------------------------------------------------------------------------


def _write(run: ExportRun, plane: Plane, lease: Lease, uri: str) -> None:
    """By the worker itself, or by Spark where the commit is large."""
    ranges = ranges_of(run.export, run.ref)
    if sum(ref.count for ref in ranges) <= config.current().validator.small_check_entries:
        _write_here(run, plane, lease, uri, manifests.in_parts(manifests.lines(_files(run, ranges)), PART_BYTES))
        return
    settings = plane.settings(run.status_path, deadline=time.time() + PARTS_SECONDS)
    tag = f"{run.export_id}-manifest"

    def by_spark(_: Uploads, upload_id: str) -> Mapping[int, Part]:
        return export_jobs.manifest_parts(ranges, settings, uri, upload_id, actions=run.actions, tag=tag)

    _write_in_parts(run, plane, lease, uri, by_spark)


def _write_here(run: ExportRun, plane: Plane, lease: Lease, uri: str, parts: Iterator[bytes]) -> None:
    """At once if it is one part; none of a larger one is kept in memory for long."""
    first, second = next(parts), next(parts, None)
    if second is None:
        with _moment(run, plane, lease, uri) as writer:
            writer.put(uri, first, _DESCRIBED)
        return

    def here(uploads: Uploads, upload_id: str) -> Mapping[int, Part]:
        bodies = enumerate(chain([first, second], parts), 1)
        return {number: uploads.put(uri, upload_id, number, body) for number, body in bodies}

    _write_in_parts(run, plane, lease, uri, here)


def _write_in_parts(
    run: ExportRun, plane: Plane, lease: Lease, uri: str, upload: Callable[[Uploads, str], Mapping[int, Part]]
) -> None:
    """Parts, which nobody sees, may take longer than the slice."""
    uploads = Uploads(Writer(clients.export_store(run.export.region, uri), Deadline(time.time() + PARTS_SECONDS)))
    for stale in list(uploads.unfinished(uri)):
        if stale.key == split_uri(uri)[1]:
            uploads.abort(uri, stale.id)  # of a worker that is gone
    upload_id = uploads.start(uri, _DESCRIBED)
    with ExitStack() as undo:
        undo.callback(uploads.abort, uri, upload_id)
        parts = upload(uploads, upload_id)
        with _moment(run, plane, lease, uri) as writer:
            _complete(writer, plane, uri, upload_id, parts)
        undo.pop_all()


@contextmanager
def _moment(run: ExportRun, plane: Plane, lease: Lease, uri: str) -> Iterator[Writer]:
    """For the one request by which it is there: what came before may have outlasted the slice, so this has a deadline
    of its own. Raises Fenced where somebody else has taken over."""
    piece = Slice.begin(run.export, lease)
    writer = Writer(clients.export_store(run.export.region, uri), piece.until())
    try:
        yield writer
    finally:
        piece.unanswered = writer.unanswered
        plane.piece.unanswered |= writer.unanswered
        piece.end()


def _complete(writer: Writer, plane: Plane, uri: str, upload_id: str, parts: Mapping[int, Part]) -> None:
    try:
        Uploads(writer).complete(uri, upload_id, parts)
    except NotFound:
        if plane.head(uri) is None:  # else a repeated request found that the first one had done it
            raise


def _files(run: ExportRun, ranges: Sequence[RangeRef]) -> Iterator[tuple[bytes, str, int]]:
    for entry in entries_of(run.export, list(ranges)):
        if run.actions or not entry.path.startswith(ACTIONS.low):
            yield entry.path, entry.etag, entry.size


# --- removed ----------------------------------------------------------------------------------------------------------


def _remove_old(run: ExportRun, plane: Plane) -> None:
    """Only what lies there as we wrote it. What can't be removed now is tried again after the next manifest, and
    logged: it costs room, and nothing else depends on it."""
    for row in _at_status_path(run)[config.current().exports.kept_manifests :]:
        try:
            _remove(row, plane)
        except (LakeMirrorError, Late) as error:
            log.warning("the old manifest %s stays for now: %s", row.uri, error)


def _remove(row: ExportManifest, plane: Plane) -> None:
    info = plane.head(row.uri)
    if info is not None and (info.size, info.etag) == (row.size, row.etag):
        plane.delete(row.uri)
    elif info is not None:
        log.warning("%s is no more the manifest that was written there: it stays", row.uri)
    row.delete()
