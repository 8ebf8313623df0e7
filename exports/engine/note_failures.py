"""What a run could not do, written down: keys, and the directories that get no marker for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from db import clock
from db.fields import escape, unescape
from exports.models import ExportFailure, ExportRun

MOST_KEPT = 20
"""So many of the files that are left alone are named; all are counted."""


def note_failures(run: ExportRun, failed: Mapping[bytes, tuple[str, str]]) -> None:
    """Keys that could not be brought or removed, each once."""
    now = clock.now()
    rows = [
        ExportFailure(run=run, key=key, reason=reason, detail=detail, at=now)
        for key, (reason, detail) in failed.items()
    ]
    ExportFailure.objects.bulk_create(rows, batch_size=500, ignore_conflicts=True)


def note_kept(run: ExportRun, keys: Iterable[bytes]) -> None:
    """Some keys that were to be removed, and stay: somebody else's objects lie there."""
    known = ExportRun.objects.select_for_update().values_list("kept_keys", flat=True).get(pk=run.pk)
    names = {key.decode("utf-8", "backslashreplace").replace("\0", "\\x00") for key in keys}
    if len(known) < MOST_KEPT and names - set(known):
        ExportRun.objects.filter(pk=run.pk).update(kept_keys=sorted({*known, *names})[:MOST_KEPT])


def note_failed_directories(run: ExportRun, directories: Iterable[bytes]) -> None:
    """They keep markers from being written there and above."""
    known = ExportRun.objects.select_for_update().values_list("failed_in", flat=True).get(pk=run.pk)
    names = {escape(directory.decode("latin-1")) for directory in directories}
    if names - set(known):
        ExportRun.objects.filter(pk=run.pk).update(failed_in=sorted({*known, *names}))


def failed_directories(run: ExportRun) -> list[bytes]:
    """Those that were noted."""
    return [unescape(name).encode("latin-1") for name in run.failed_in]


UNWRITTEN = "The status could not be written either"
"""How the error of a run ends that left no status file."""
