"""A slice of a run: how long it goes, and until when what it started may still write.

`writes_until` stands in the database before anything is started. Who takes over waits for it: so no task of a worker
that is gone puts an old file over a new one. After a write that got no answer it stays, whoever goes on: a store may
carry out what nobody waits for any more.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import transaction

from core.exporting.deadline import Deadline
from db import clock
from deployment import config
from exports.models import Export
from jobs.lease import Lease

MARGIN_SECONDS = 75.0
"""Longer than one request to a store can take (adapters.s3.writes.COPY_SECONDS) and clocks of machines differ. So
long a store may take to carry out what it never answered, too."""


def longest_after_a_run() -> timedelta:
    """So long after the end of a run one of its writes may be carried out: it ended in its last slice, which may have
    waited for a request beyond its own time."""
    return config.current().exports.slice + timedelta(seconds=2 * MARGIN_SECONDS)


@dataclass(slots=True)
class Slice:
    """`deadline` is a Unix time by the database's clock: nothing visible begins after it.

    `before`: until when writes of earlier slices, which got no answer, may still be carried out; `unanswered`: there
    was one in this slice.
    """

    export: Export
    deadline: float
    writes_until: datetime
    seconds: float
    began: float = field(default_factory=time.monotonic)
    before: datetime | None = None
    unanswered: bool = False

    @classmethod
    def begin(cls, export: Export, lease: Lease) -> Slice:
        """Note in the database until when there may be writes. Raises Fenced when the lease was lost."""
        seconds = config.current().exports.slice.total_seconds()
        with transaction.atomic():
            lease.lock()
            now = clock.now()
            at = now + timedelta(seconds=seconds)
            before = _if_after(now, Export.objects.values_list("writes_until", flat=True).get(pk=export.pk))
            until = max(at + timedelta(seconds=MARGIN_SECONDS), before or now)
            Export.objects.filter(pk=export.pk).update(writes_until=until)
        return cls(export, at.timestamp(), until, seconds, before=before)

    @property
    def over(self) -> bool:
        """Has the time gone by, but for what one more step is worth?"""
        return time.monotonic() - self.began > 0.9 * self.seconds

    def until(self) -> Deadline:
        """The deadline for whoever writes in this process."""
        return Deadline(self.deadline)

    @property
    def unsettled(self) -> bool:
        """May a write that got no answer still be carried out?"""
        return self.unanswered or _if_after(clock.now(), self.before) is not None

    def end(self) -> None:
        """Nothing is under way any more, but for what got no answer."""
        now = clock.now()
        until = _if_after(now, self.before)
        if self.unanswered:
            until = max(now + timedelta(seconds=MARGIN_SECONDS), self.writes_until)
        Export.objects.filter(pk=self.export.pk, writes_until=self.writes_until).update(writes_until=until)


def _if_after(now: datetime, at: datetime | None) -> datetime | None:
    return at if at is not None and at > now else None
