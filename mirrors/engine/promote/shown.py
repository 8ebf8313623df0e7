"""What do the destination's branches show, of what we put there ourselves? All of that was proven then."""

from __future__ import annotations

import time
from collections.abc import Mapping

from django.db.models import F

from core.ports import LakeFS
from jobs.lease import Lease
from mirrors.engine.promote.guard import Failures
from mirrors.engine.sense.branches import list_heads
from mirrors.models import Mirror
from mirrors.queries.ancestors import ShownHistory

LISTED_FOR = 2.0
"""So many seconds a list of the destination's branches counts, as long as no call fails: behind a failure, and in a
round that takes long, the destination may have been restored from a backup."""


class Shown:
    """The history that a proof may leave out, in one round over a mirror's branches and tags."""

    def __init__(
        self, mirror: Mirror, lakefs: LakeFS, lease: Lease, heads: Mapping[str, str], failures: Failures
    ) -> None:
        self._mirror, self._lakefs, self._lease, self._failures = mirror, lakefs, lease, failures
        self._take(heads)

    def history(self) -> ShownHistory:
        """As it is now. Where somebody else put a branch, nothing below it need be there."""
        if time.monotonic() > self._until or self._failures.number != self._failed:
            self._take(list_heads(self._lakefs, self._mirror.name, self._lease))
        return self._history

    def _take(self, heads: Mapping[str, str]) -> None:
        self._failed, self._until = self._failures.number, time.monotonic() + LISTED_FOR
        placed = self._mirror.branches.filter(placed=F("head"), stray=False, misplaced=False).exclude(head="")
        own = {head for name, head in placed.values_list("name", "head") if heads.get(name) == head}
        self._history = ShownHistory(self._mirror.source, own)
