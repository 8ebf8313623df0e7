"""The work of exports: by Spark, or in this process."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from adapters.s3.multipart import Part
from adapters.s3.store import split_uri
from deployment import config
from deployment.wiring import executors, region_settings

if TYPE_CHECKING:
    from core.exporting.unit_values import Marked
    from graveler.metarange import RangeRef
    from spark_jobs.export.settings import ExportSettings

Rows = Callable[[Sequence[Mapping[str, Any]]], None]
Job = Callable[..., Any]


def settings(*, region: str, namespace: str, path: str, **more: Any) -> ExportSettings:
    """What the jobs of an export are told: places without secrets."""
    from spark_jobs.export.settings import ExportSettings

    name, store = config.current().export_store(region, split_uri(path)[0])
    own = region_settings.usable(region)
    source = executors.location(namespace, region, own.store, own.access)
    access = own.access if name == region else store.access
    return ExportSettings(source=source, destination=executors.location(path, name, store, access), **more)


def diff(work: Sequence[Any], settings: ExportSettings, on_rows: Rows, *, here: bool, tag: str) -> None:
    """Plan units of an export: `here`, in this process, else by Spark. Rows of DIFF_COLUMNS."""
    from spark_jobs.export.diff import diff, diff_units

    _run(diff, diff_units, work, on_rows, here, tag, settings=settings)


def copy(work: Sequence[Any], settings: ExportSettings, phase: Any, on_rows: Rows, *, here: bool, tag: str) -> None:
    """Work on units of an export in a phase, in the same way. Rows of COPY_COLUMNS."""
    from spark_jobs.export.copy import copy, copy_units

    _run(copy, copy_units, work, on_rows, here, tag, settings=settings, phase=phase)


def verify(work: Sequence[Any], settings: ExportSettings, on_rows: Rows, *, here: bool, tag: str) -> None:
    """Compare a commit's units with an export's destination, in the same way. Rows of VERIFY_COLUMNS."""
    from spark_jobs.export.verify import verify, verify_units

    _run(verify, verify_units, work, on_rows, here, tag, settings=settings)


def _run(
    by_spark: Job, in_process: Job, work: Sequence[Any], on_rows: Rows, here: bool, tag: str, **settings: Any
) -> None:
    """Do a job by Spark, or in this process."""
    if not here:
        from spark_jobs import runner

        return runner.spark().run_export(functools.partial(by_spark, **settings), work, on_rows, tag)
    executors.tell_keys()
    for batch in in_process(work, **settings):
        on_rows(batch.to_pylist())
    return None


def held_keys(keys: Mapping[str, Sequence[bytes]], settings: ExportSettings) -> set[bytes]:
    """Which keys ranges hold."""
    from spark_jobs.export.diff import held_keys

    executors.tell_keys()
    return held_keys(keys, settings)


def manifest_parts(
    refs: Sequence[RangeRef], settings: ExportSettings, uri: str, upload_id: str, *, actions: bool, tag: str
) -> Mapping[int, Part]:
    """Upload the parts of a large commit's manifest, by Spark: by their numbers."""
    from spark_jobs import runner
    from spark_jobs.export.manifest import Upload, cut_parts, write_parts

    parts: dict[int, Part] = {}

    def take(rows: Sequence[Mapping[str, Any]]) -> None:
        parts.update({row["number"]: Part(row["size"], row["etag"]) for row in rows})

    job = functools.partial(write_parts, settings=settings, upload=Upload(uri, upload_id, actions))
    runner.spark().run_export(job, cut_parts(refs, actions=actions), take, tag)
    return parts


def markers(directories: Sequence[bytes], settings: ExportSettings, *, write: bool) -> Marked:
    """Write or remove the markers of directories at an export's destination."""
    from spark_jobs.export.markers import remove_markers, write_markers

    executors.tell_keys()
    return (write_markers if write else remove_markers)(directories, settings)


def uploads(settings: ExportSettings) -> Mapping[bytes, Sequence[str]]:
    """The unfinished uploads at an export's destination, by key; those of others too."""
    from spark_jobs.export.settings import copier_of

    executors.tell_keys()
    with closing(copier_of(settings)) as copier:
        return copier.unfinished()


def abort(uploads: Mapping[bytes, Sequence[str]], settings: ExportSettings) -> None:
    """Give uploads up."""
    from spark_jobs.export.settings import copier_of

    executors.tell_keys()
    with closing(copier_of(settings)) as copier:
        copier.abort(uploads)
