"""Markers at an export's destination: removed before their directories change, written when all below has arrived."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import groupby

from adapters.copying import Copier
from core.errors import LakeMirrorError
from core.export_work import Marked
from core.markers import Failed, marker_of, marker_order
from core.slices import Late
from spark_jobs.export_settings import ExportSettings, copier_of


def remove_markers(directories: Iterable[bytes], settings: ExportSettings) -> Marked:
    """Removes the markers of these directories; one that is not there is removed."""
    chosen = marker_order(directories)
    with closing(copier_of(settings)) as copier:
        try:
            failed = copier.delete([marker_of(one) for one in chosen])
        except Late:
            return Marked(left=chosen)
    failures = {one: failed[marker_of(one)] for one in chosen if marker_of(one) in failed}
    return Marked(len(chosen) - len(failures), failures=failures)


def write_markers(directories: Iterable[bytes], settings: ExportSettings) -> Marked:
    """Writes empty markers, each after those of the directories below it. Where one fails, those above are not written:
    they are neither done nor left."""
    marked = Marked()
    with closing(copier_of(settings)) as copier, ThreadPoolExecutor(settings.threads) as pool:
        for _, level in groupby(sorted(set(directories), key=_depth, reverse=True), key=_depth):
            _write_level(list(level), copier, pool, marked)
    return marked


def _depth(directory: bytes) -> int:
    return directory.count(b"/")


def _write_level(level: Sequence[bytes], copier: Copier, pool: ThreadPoolExecutor, marked: Marked) -> None:
    """Directories of one depth: none of them lies below another."""
    failed = Failed(marked.failures)
    ready = [one for one in level if not failed.below(one)]
    if marked.left:
        # Something below may not be marked yet.
        marked.left += ready
        return
    for directory, outcome in zip(ready, pool.map(lambda one: _write(one, copier), ready), strict=True):
        if outcome is None:
            marked.done += 1
        elif isinstance(outcome, Late):
            marked.left.append(directory)
        else:
            marked.failures[directory] = outcome


def _write(directory: bytes, copier: Copier) -> LakeMirrorError | Late | None:
    try:
        copier.writer.put(copier.destination.uri(marker_of(directory)), b"")
    except (LakeMirrorError, Late) as error:
        return error
    return None
