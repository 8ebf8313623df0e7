"""What sweeps and held merges need of a process of the fleet: stores by its wire, and shorter times."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from types import ModuleType
from typing import Any

from core.errors import LakeMirrorError
from core.exporting.deadline import Late
from core.sweeping import Standing
from tests.fakes import BulkStandIn
from tests.fleet import APART_SECONDS

TRIES = 4
"""As often a client of a store tries what a second try may mend."""
SOON, LATER, EXPIRES = timedelta(seconds=3), timedelta(seconds=20), timedelta(seconds=30)


def quicken() -> None:
    """Weeks, hours and minutes become seconds, and a lease that is ten times shorter lasts for a batch."""
    from core import sweeping
    from jobs import kinds
    from mirroring.sweep import deletions, look
    from mirrors.transitions import held_merges, move_intents

    replaced(sweeping, APART=timedelta(seconds=APART_SECONDS))
    replaced(look, APART=timedelta(seconds=APART_SECONDS), AGAIN=SOON, EXPIRES=EXPIRES, PRUNED_IN=1.0, LITTLE=10**9)
    replaced(deletions, EXPIRES=EXPIRES, SLICE_SECONDS=2.0, BATCH_SECONDS=1.0, FENCED_SECONDS=3.0, ROUNDS_APART=2)
    kinds.register(*(replace(kind, interval=lambda: 2.0) for kind in kinds.registered() if kind.name == "sweep"))
    replaced(move_intents, KEPT=timedelta(seconds=6))
    replaced(held_merges, KEPT_AFTER_REFUSAL=LATER, TAKEN_WITHIN=LATER, ANSWER_LOST=timedelta(seconds=6))


def replaced(module: ModuleType, **values: Any) -> None:
    """Other values of what a module has. Raises AttributeError for what it does not have."""
    for name, value in values.items():
        getattr(module, name)
        setattr(module, name, value)


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
