"""How far a check is with what it brings: the rows of its tasks, added up for whoever looks meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import F

from mirrors.models import Mirror, Run
from spark_jobs.check.progress import COUNTS


class RunProgress:
    """Of one run, whose only writer this is."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._lanes = {lane: dict.fromkeys(COUNTS, 0) for lane in Run.LANES}

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Count rows of the kind 'bringing'. What was brought is there, whatever becomes of the check."""
        copied, copied_bytes = self._sum("copied"), self._sum("copied_bytes")
        for row in rows:
            lane = self._lanes[Run.LARGE if row["large"] else Run.SMALL]
            for name in COUNTS:
                lane[name] += row[name]
        totals = {name: self._sum(name) for name in ("lacking", "copied", "copied_bytes")}
        Run.objects.filter(pk=self._run.pk).update(lanes=self._lanes, **totals)
        if totals["copied"] > copied:
            new = {"copied": totals["copied"] - copied, "copied_bytes": totals["copied_bytes"] - copied_bytes}
            Mirror.objects.filter(pk=self._run.mirror_id).update(**{name: F(name) + new[name] for name in new})

    def _sum(self, name: str) -> int:
        return sum(lane[name] for lane in self._lanes.values())
