"""How far a check is with what it brings, for whoever looks meanwhile: the rows of tasks that have ended, and what the
others tell of themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.models import F

from mirrors.models import Mirror, Run
from spark_jobs.check.progress import COUNTS, LANES, Lanes, nothing


class RunProgress:
    """Of one run, whose only writer this is."""

    def __init__(self, run: Run) -> None:
        self._run, self._ended, self._shown = run, nothing(), nothing()

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Count rows of the kind 'bringing'. What was brought is there, whatever becomes of the check."""
        before = _sums(self._ended)
        for row in rows:
            for name in COUNTS:
                self._ended[row["lane"]][name] += row[name]
        self._show(self._ended)
        self._count(_sums(self._ended), before)

    def look(self, tasks: Sequence[Lanes]) -> None:
        """Show what tasks tell of themselves; their rows come when they have ended."""
        if tasks:
            self._show({lane: {name: sum(task[lane][name] for task in tasks) for name in COUNTS} for lane in LANES})

    def end(self) -> None:
        """Count what tasks told whose rows never came: the job was ended before they had."""
        self._count(_sums(self._shown), _sums(self._ended))

    def _show(self, lanes: Lanes) -> None:
        """The more of what is known of each number: all of them only grow."""
        self._shown = {
            lane: {name: max(lanes[lane][name], self._shown[lane][name]) for name in COUNTS} for lane in LANES
        }
        totals = _sums(self._shown)
        shown = {name: totals[name] for name in ("lacking", "copied", "copied_bytes")}
        Run.objects.filter(pk=self._run.pk).update(lanes=self._shown, **shown)

    def _count(self, after: Mapping[str, int], before: Mapping[str, int]) -> None:
        if after["copied"] > before["copied"]:
            new = {name: F(name) + after[name] - before[name] for name in ("copied", "copied_bytes")}
            Mirror.objects.filter(pk=self._run.mirror_id).update(**new)


def _sums(lanes: Lanes) -> dict[str, int]:
    return {name: sum(counts[name] for counts in lanes.values()) for name in COUNTS}
