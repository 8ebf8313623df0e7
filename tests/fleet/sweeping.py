"""What sweeps and held merges need of a process of the fleet: stores by its wire, and shorter times."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from core.errors import LakeMirrorError
from core.exporting.deadline import Late
from core.sweeping import Standing
from tests.fakes import BulkStandIn
from tests.fleet import APART_SECONDS

TRIES = 4
"""As often a client of a store tries what a second try may mend."""
SLICE_SECONDS, BATCH_SECONDS, FENCED_SECONDS = 2.0, 1.0, 3.0
SOON = timedelta(seconds=3)


def quicken() -> None:
    """Weeks, hours and minutes become seconds, and a lease that is ten times shorter lasts for a batch."""
    from core import sweeping
    from jobs import kinds
    from mirroring.sweep import deletions, look
    from mirrors.transitions import held_merges, move_intents

    sweeping.APART = look.APART = timedelta(seconds=APART_SECONDS)
    look.EXPIRES = deletions.EXPIRES = timedelta(seconds=30)
    look.AGAIN, look.PRUNED_IN, look.LITTLE = SOON, 1.0, 10**9
    deletions.SLICE_SECONDS, deletions.BATCH_SECONDS = SLICE_SECONDS, BATCH_SECONDS
    deletions.FENCED_SECONDS, deletions.ROUNDS_APART = FENCED_SECONDS, 2
    kinds.register(*(replace(kind, interval=lambda: 2.0) for kind in kinds.registered() if kind.name == "sweep"))
    move_intents.KEPT = timedelta(seconds=6)
    held_merges.KEPT_AFTER_REFUSAL = held_merges.TAKEN_WITHIN = timedelta(seconds=20)
    held_merges.ANSWER_LOST = timedelta(seconds=6)


class Patient:
    """A store of the world whose calls are tried again, as the clients of real ones do."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **options: _tried(getattr(self._store, name), *args, **options)


def _tried(call: Callable[..., Any], *args: Any, until: float = float("inf"), **options: Any) -> Any:
    for left in reversed(range(TRIES)):
        try:
            return call(*args, **options)
        except LakeMirrorError as error:
            if not (left and error.retryable) or time.monotonic() > until:
                raise
            time.sleep(0.05)


class SweptStandIn(BulkStandIn):
    """A store as sweeps want it: with listings."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.page = store.page  # type: ignore[method-assign]


class Remover:
    """adapters/s3/remover.py, by the wire."""

    def __init__(self, store: Patient) -> None:
        self.store = store

    def standing(self, uri: str) -> Standing | None:
        """How an object stands; None: it is not there."""
        found: Standing | None = self.store.standing(uri)
        return found

    def delete(self, uris: Sequence[str], seconds: float) -> dict[str, LakeMirrorError]:
        """Begins no call after so many seconds: raises Late. Gives what could not be deleted."""
        ends, failed = time.monotonic() + seconds, dict[str, LakeMirrorError]()
        for uri in uris:
            if time.monotonic() > ends:
                raise Late
            try:
                self.store.delete(uri, until=ends)
            except LakeMirrorError as error:
                failed[uri] = error
        return failed
