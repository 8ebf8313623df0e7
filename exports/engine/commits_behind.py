"""Which commits have landed on a branch: since the last complete export, and between two runs of it.

Only told, never decided by. What the source does not answer now is unknown, and asked again at the next look.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from core.errors import LakeMirrorError
from core.exporting.branch_line import Line
from core.exporting.state_machine import LOOK_IN_A_RUN
from db import clock
from exports.engine import runs
from exports.engine.source_commits import line_after
from exports.models import Export, ExportRun, SkippedCommit

log = logging.getLogger("lakemirror.export")

LONGEST_MESSAGE = 500


def look_meanwhile(export: Export) -> None:
    """While a run goes on the branch is looked at once a minute, so that it is known what waits for the next one."""
    if export.head_at is not None and clock.now() - export.head_at < LOOK_IN_A_RUN:
        return
    try:
        runs.head_of(export)
    except LakeMirrorError as error:
        log.info("the branch of %s can't be looked at: %s", export, error)
    else:
        count_behind(export)


def count_behind(export: Export) -> None:
    """How many commits the head is after the last success, or after the last try where there was none yet, noted; once
    for each two of them."""
    base = export.last_success_ref or export.current_ref
    of = f"{export.head}:{base}"
    if not base or of == export.behind_of:
        return
    try:
        line = line_after(export, export.head, base)
    except LakeMirrorError as error:
        log.info("how far %s is behind can't be told: %s", export, error)
        return
    first = line.commits[-1].creation_date if line and line.commits else None
    Export.objects.filter(pk=export.pk).update(
        behind_commits=len(line.commits) if line else None,
        behind_more=bool(line and not line.whole),
        behind_since=_at(first),
        behind_of=of,
    )


def between_runs(run: ExportRun) -> Line | None:
    """The commits after the one that the run before exported, and before this run's; None where that is not known."""
    before = ExportRun.objects.filter(export=run.export_id, pk__lt=run.pk).order_by("-pk").first()
    if before is None or before.ref == run.ref:
        return Line((), whole=True)
    try:
        line = line_after(run.export, run.ref, before.ref)
    except LakeMirrorError as error:
        log.info("which commits %s skips can't be told: %s", run, error)
        return None
    return line and Line(line.commits[1:], line.whole)


def note_skipped(run: ExportRun, line: Line | None) -> None:
    """Inside of the transaction that cuts the run."""
    if line is None:
        return
    run.skipped_ones.all().delete()
    rows = [
        SkippedCommit(
            run=run, sha=commit.id, message=commit.message[:LONGEST_MESSAGE], committed_at=_at(commit.creation_date)
        )
        for commit in line.commits
    ]
    SkippedCommit.objects.bulk_create(rows, batch_size=500)
    ExportRun.objects.filter(pk=run.pk).update(skipped_commits=len(rows))


def _at(seconds: int | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
