"""What do the destination's branches show, of what we put there ourselves? All of that was proven then."""

from __future__ import annotations

import time
from collections.abc import Mapping

from django.db.models import F

from core.ports import LakeFS
from jobs.lease import Lease
from mirroring.promote.ref_failures import Failures
from mirroring.sense.read_log import list_heads
from mirrors.models import Mirror
from mirrors.queries.ancestors import ShownHistory

LISTED_FOR = 2.0
"""So many seconds a list of the destination's branches counts, as long as no call fails: behind a failure, and in a
round that takes long, the destination may have been restored from a backup."""


class Shown:
    """The history that a proof may leave out, in one round over a mirror's branches and tags. `heads`: what the
    destination's branches pointed to when the round began."""

    def __init__(self, mirror: Mirror, lakefs: LakeFS, lease: Lease, failures: Failures) -> None:
        self._mirror, self._lakefs, self._lease, self._failures = mirror, lakefs, lease, failures
        self._history: ShownHistory | None = None
        self.heads = self._list()

    def history(self) -> ShownHistory:
        """As it is now. Where somebody else put a branch, nothing below it need be there."""
        old = time.monotonic() > self._until or self._failures.number != self._failed
        if self._history is None or old:
            self._history = ShownHistory(self._mirror.source, self._placed_by_us(self._list() if old else self.heads))
        return self._history

    def _list(self) -> Mapping[str, str]:
        self._failed, self._until = self._failures.number, time.monotonic() + LISTED_FOR
        return list_heads(self._lakefs, self._mirror.name, self._lease)

    def _placed_by_us(self, heads: Mapping[str, str]) -> set[str]:
        placed = self._mirror.branches.filter(placed=F("head"), stray=False, misplaced=False).exclude(head="")
        return {head for name, head in placed.values_list("name", "head") if heads.get(name) == head}
