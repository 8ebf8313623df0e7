"""The data plane as a run uses it: the jobs, in this process or by Spark, and the few objects that it writes itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from adapters.s3.store import split_uri
from adapters.s3.writes import Writer
from core.errors import Denied, NotFound
from core.exporting.unit_planning import holders
from core.exporting.unit_values import Marked, Phase, UnitWork
from core.types import ObjectInfo
from deployment import config
from deployment.wiring import clients, export_jobs
from exports.engine.note_failures import failed_directories
from exports.engine.source_commits import ranges_of
from exports.engine.time_slice import Slice
from exports.models import ExportRun

OnRows = Callable[[Sequence[Mapping[str, Any]]], None]


class Plane:
    """What one slice of a run reads and writes."""

    def __init__(self, run: ExportRun, piece: Slice, last_try: bool = False) -> None:
        self.run, self.piece, self.last_try = run, piece, last_try
        self.elsewhere = False
        """Whether tasks of Spark's may still be at work: of a job that did not come to its end."""

    def settings(self, place: str = "", *, deadline: float = 0.0) -> Any:
        """Of now: limits may have been changed, and something may have failed. For another place than the run's too,
        and for another deadline than the slice's: of what nobody sees."""
        export, run = self.run.export, self.run
        return export_jobs.settings(
            region=export.region,
            namespace=export.storage_namespace,
            path=place or run.path,
            patterns=tuple(run.patterns),
            former=tuple(run.former),
            deadline=deadline or self.piece.deadline,
            compare=run.compare,
            ask=not run.base and not run.repairs_id,
            failed=tuple(failed_directories(run)),
            objects_per_second=float(export.objects_per_second or 0),
            bytes_per_second=float(export.bytes_per_second or 0),
            patient=not self.last_try,
            repair=bool(run.repairs_id),
        )

    def check_places(self) -> None:
        """Raises NotFound for a bucket that does not exist: no file could arrive. Raises Denied where our key may not
        list what a first run has to look at; who may not may still write, a status file above all."""
        for uri in filter(None, (self.run.path, self.run.status_path)):
            try:
                clients.export_store(self.run.export.region, uri).page(f"{uri}/")
            except NotFound as error:
                bucket = split_uri(uri)[0]
                raise NotFound(f"the bucket '{bucket}' does not exist", hint="Create it, then click Repair") from error
            except Denied as error:
                if uri == self.run.path and not self.run.base:
                    text = f"the key may not list {uri} (s3:ListBucket), which a first run needs to see what is there"
                    raise Denied(f"{text}: {error.message}") from error

    def diff(self, work: Sequence[UnitWork], on_rows: OnRows) -> None:
        """Plan units."""
        small = sum(item.unit.entries for item in work) <= config.current().validator.small_check_entries
        export_jobs.diff(work, self.settings(), on_rows, here=small, tag=str(self.run.export_id))

    def work(self, work: Sequence[UnitWork], phase: Phase, on_rows: OnRows) -> None:
        """Work on units in a phase."""
        small = self._is_small()
        self.elsewhere = not small
        export_jobs.copy(work, self.settings(), phase, on_rows, here=small, tag=str(self.run.export_id))
        self.elsewhere = False

    def _is_small(self) -> bool:
        """Of the whole run: whether the worker does it by itself."""
        most = config.current().exports
        run = self.run
        return run.to_copy + run.to_delete <= most.small_files and run.to_copy_bytes <= most.small_bytes

    def held(self, keys: Sequence[bytes], ref: str = "") -> set[bytes]:
        """Which of these keys the run's commit has itself, or another one."""
        ranges = ranges_of(self.run.export, ref or self.run.ref)
        return export_jobs.held_keys(holders(ranges, sorted(keys)), self.settings())

    def remove_markers(self, directories: Sequence[bytes], place: str = "") -> Marked:
        """Take markers away, at the run's place or another one."""
        return self._note_unanswered(export_jobs.markers(directories, self.settings(place), write=False))

    def write_markers(self, directories: Sequence[bytes]) -> Marked:
        """Write markers, children first."""
        return self._note_unanswered(export_jobs.markers(directories, self.settings(), write=True))

    def _note_unanswered(self, marked: Marked) -> Marked:
        self.piece.unanswered |= marked.unanswered
        return marked

    def unfinished(self) -> Mapping[bytes, Sequence[str]]:
        """Uploads in parts that were begun at the destination, by key; those of others too."""
        return export_jobs.uploads(self.settings())

    def abort(self, uploads: Mapping[bytes, Sequence[str]]) -> None:
        """Give uploads up."""
        export_jobs.abort(uploads, self.settings())

    def get(self, uri: str) -> bytes:
        """An object from anywhere. NotFound, Denied, Unreachable."""
        return clients.export_store(self.run.export.region, uri).get(uri)

    def head(self, uri: str) -> ObjectInfo | None:
        """What a store tells of an object anywhere; None for none."""
        return clients.export_store(self.run.export.region, uri).head(uri)

    def delete(self, uri: str) -> None:
        """Delete an object anywhere. Raises what keeps it from going."""
        writer = Writer(clients.export_store(self.run.export.region, uri), self.piece.until())
        try:
            for error in writer.delete([uri]).values():
                raise error
        finally:
            self.piece.unanswered |= writer.unanswered

    def put(self, uri: str, data: bytes, content_type: str) -> None:
        """Write an object anywhere, a status file say."""
        writer = Writer(clients.export_store(self.run.export.region, uri), self.piece.until())
        try:
            writer.put(uri, data, {"content-type": content_type})
        finally:
            self.piece.unanswered |= writer.unanswered
