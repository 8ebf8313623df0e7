"""Markers at an export's destination: removed before their directories change, written when all below has arrived.

A marker is empty. A file of this name that holds something is no marker: it is somebody's own, and stays.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import groupby

from adapters.s3.copier import Copier
from core.errors import LakeMirrorError
from core.exporting.deadline import Late
from core.exporting.failure_reasons import KeyFailed, Reason
from core.exporting.markers import Failed, directory_of, marker_of, marker_order
from core.exporting.unit_values import Marked
from spark_jobs.export.compare import listed
from spark_jobs.export.settings import ExportSettings, copier_of

LISTED_AT_ONCE = 32


def remove_markers(directories: Iterable[bytes], settings: ExportSettings) -> Marked:
    """Removes the markers of these directories; one that is not there is removed. Raises what the listing raises."""
    chosen = marker_order(directories)
    with closing(copier_of(settings)) as copier, ThreadPoolExecutor(settings.threads) as pool:
        try:
            filled = _filled(chosen, copier, pool)
            failed = copier.delete([marker_of(directory) for directory in chosen if directory not in filled])
        except Late:
            return Marked(left=chosen, unanswered=copier.writer.unanswered)
    failures = {directory_of(marker): error for marker, error in failed.items()}
    return Marked(failures=failures, unanswered=copier.writer.unanswered)


def _filled(directories: Sequence[bytes], copier: Copier, pool: ThreadPoolExecutor) -> set[bytes]:
    """Those in which a file that holds something has the marker's name. Raises what the store raises."""
    markers = sorted(marker_of(directory) for directory in directories)
    each = max(1, -(-len(markers) // LISTED_AT_ONCE))
    some = [markers[at : at + each] for at in range(0, len(markers), each)]
    look = functools.partial(listed, copier.writer.store, copier.destination)
    return {directory_of(key) for objects in pool.map(look, some) for key, info in objects.items() if info.size}


def write_markers(directories: Iterable[bytes], settings: ExportSettings) -> Marked:
    """Writes empty markers, each after those of the directories below it. Where one fails, those above are not written:
    they are neither failures nor left."""
    marked = Marked()
    with closing(copier_of(settings)) as copier, ThreadPoolExecutor(settings.threads) as pool:
        for _, level in groupby(sorted(set(directories), key=_depth, reverse=True), key=_depth):
            _write_level(list(level), copier, pool, marked)
        marked.unanswered = copier.writer.unanswered
    return marked


def _depth(directory: bytes) -> int:
    return directory.count(b"/")


def _write_level(level: Sequence[bytes], copier: Copier, pool: ThreadPoolExecutor, marked: Marked) -> None:
    """Directories of one depth: none of them lies below another."""
    failed = Failed(marked.failures)
    ready = [directory for directory in level if not failed.below(directory)]
    if marked.left:
        # Something below may not be marked yet.
        marked.left += ready
        return
    try:
        filled = _filled(ready, copier, pool)
    except LakeMirrorError as error:
        marked.failures |= dict.fromkeys(ready, error)
        return
    for directory, outcome in zip(
        ready, pool.map(lambda directory: _write(directory, copier, filled), ready), strict=True
    ):
        if isinstance(outcome, Late):
            marked.left.append(directory)
        elif outcome is not None:
            marked.failures[directory] = outcome


def _write(directory: bytes, copier: Copier, filled: Collection[bytes]) -> LakeMirrorError | Late | None:
    try:
        if directory in filled:
            return KeyFailed(Reason.FOREIGN, f"{copier.destination.uri(marker_of(directory))} is somebody's own file")
        copier.writer.put(copier.destination.uri(marker_of(directory)), b"")
    except (LakeMirrorError, Late) as error:
        return error
    return None
