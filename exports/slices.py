"""A slice of a run: how long it goes, and until when what it started may still write.

`writes_until` stands in the database before anything is started. Who takes over waits for it: so no task of a worker
that is gone puts an old file over a new one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import transaction

from core.slices import Deadline
from exports.models import Export
from lakemirror_site import config
from mirrors import clock
from mirrors.duties import Lease

MARGIN_SECONDS = 75.0
"""Longer than one request to a store can take (adapters.copying_verbs.COPY_SECONDS) and clocks of machines differ."""


@dataclass(slots=True)
class Slice:
    """`deadline` is a Unix time by the database's clock: nothing visible begins after it."""

    export: Export
    deadline: float
    writes_until: datetime
    seconds: float
    began: float = field(default_factory=time.monotonic)

    @classmethod
    def begin(cls, export: Export, lease: Lease) -> Slice:
        """Note in the database until when there may be writes. Raises Fenced when the lease was lost."""
        seconds = config.current().exports.slice.total_seconds()
        at = clock.now() + timedelta(seconds=seconds)
        until = at + timedelta(seconds=MARGIN_SECONDS)
        with transaction.atomic():
            lease.hold()
            Export.objects.filter(pk=export.pk).update(writes_until=until)
        return cls(export, at.timestamp(), until, seconds)

    @property
    def over(self) -> bool:
        """Has the time gone by, but for what one more step is worth?"""
        return time.monotonic() - self.began > 0.9 * self.seconds

    def until(self) -> Deadline:
        """The deadline for whoever writes in this process."""
        return Deadline(self.deadline)

    def end(self) -> None:
        """Nothing is under way any more."""
        Export.objects.filter(pk=self.export.pk, writes_until=self.writes_until).update(writes_until=None)
