"""A piece of a pass: windows of its stretches, each judged and written down with the checkpoint behind it.

What was seen, what was given to the ledger, the rows of the report and where the stretch goes on are one transaction:
whoever is killed leaves at most one page to be read again, and nothing that is counted twice. A stretch goes on
strictly after a key, be that key still there or not.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F

from core.replicating.passes import What
from db import clock
from jobs.lease import Lease
from replication.models import Link, OpenObject, Pass, PassStretch
from replication.transitions import duties, ledger, passes
from spark_jobs.replicate.looking import Looker
from spark_jobs.replicate.passing import Judge, Judged

SLICE_SECONDS = 20.0
"""So long one pass reads; then others have their turn."""
AHEAD = 10_000
"""No more objects wait for the link at a time: the pass reads on as fast as these are copied."""


@dataclass
class Reading:
    """One round of a pass. `full`: as many objects wait as may; `crowded`: the link has no room for more."""

    made: Pass
    lease: Lease
    links: Sequence[Link]
    looker: Looker
    seconds: float = SLICE_SECONDS
    full: bool = False
    crowded: bool = False

    def __post_init__(self) -> None:
        self._began = time.monotonic()
        self._judge = Judge(self.made, self.looker, self.links)

    @property
    def over(self) -> bool:
        """Is the time up, or has somebody ended it?"""
        return time.monotonic() - self._began >= self.seconds or self.full or not self._goes_on()

    def _goes_on(self) -> bool:
        now = Pass.objects.filter(pk=self.made.pk, ended_at=None).select_related("rule", "link").first()
        if now is None or now.is_dry:
            return now is not None
        return not any(one is not None and one.paused for one in (now.rule, now.link))

    def carry(self) -> bool:
        """Read on until the time is up; whether every stretch has been read. Raises what a store answers."""
        while not self.over:
            stretch = PassStretch.objects.filter(of=self.made.pk, done=False).order_by("low").first()
            if stretch is None:
                return True
            self._read(stretch)
        return not PassStretch.objects.filter(of=self.made.pk, done=False).exists()

    def _read(self, stretch: PassStretch) -> None:
        high = None if stretch.high is None else bytes(stretch.high).decode()
        for window in self.looker.windows(bytes(stretch.after).decode(), high):
            for error in window.failed.values():
                raise error
            if not self._note(stretch, self._judge.judge(window), window) or window.end or self.over:
                return

    def _note(self, stretch: PassStretch, judged: Judged, window: Any) -> bool:
        """Write down what a window has shown; false where the ledger has no room for it now."""
        with self.lease.transaction():
            link = None if self.made.is_dry else ledger.hold(self.links[0].pk)
            made = Pass.objects.select_for_update().filter(pk=self.made.pk, ended_at=None).first()
            if made is None:
                return False
            if link is not None and not self._give(link, judged):
                self.full = self.crowded = True
                return False
            Pass.objects.filter(pk=made.pk).update(
                actions=_summed(made.actions, judged),
                looked_at=F("looked_at") + judged.looked_at,
                looked_at_bytes=F("looked_at_bytes") + judged.bytes,
            )
            if made.is_dry:  # one that copies tells in the end what has failed
                passes.report(made, judged.rows)
            after = stretch.high if window.end and stretch.high is not None else window.last.encode()
            PassStretch.objects.filter(pk=stretch.pk).update(after=after, done=window.end)
        self.full = self.full or (not self.made.is_dry and self._waits())
        return True

    def _give(self, link: Link, judged: Judged) -> bool:
        """What is to be copied goes to the ledger; false where that has no room."""
        lacks = judged.lacks[link.pk]
        if not lacks:
            return True
        duties.wake_links([link.pk])
        return passes.note(link, self.made, lacks, clock.now(), again=self.made.what == What.ALL)

    def _waits(self) -> bool:
        """Whether as many objects wait for the link as may."""
        rows = OpenObject.objects.filter(of_pass=self.made.pk).order_by()
        return len(rows.values_list("pk", flat=True)[:AHEAD]) >= AHEAD


def _summed(actions: dict[str, dict[str, list[int]]], judged: Judged) -> dict[str, dict[str, list[int]]]:
    for link, found in judged.actions.items():
        sums = actions.setdefault(link, {})
        for action, (number, size) in found.items():
            before = sums.get(action, [0, 0])
            sums[action] = [before[0] + number, before[1] + size]
    return actions
