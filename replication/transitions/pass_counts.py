"""What passes count when objects that they wait for come to their end: in the transaction that ends these."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum

from django.db.models import F

from core.replicating.outcomes import Kind, Outcome
from replication.models import OpenObject, Pass


class How(StrEnum):
    """How an object ended: it was sent, it was there already, or the source has it no more."""

    COPIED = "copied"
    EQUAL = "found_equal"
    GONE = "gone"


def how_of(outcome: Outcome) -> How:
    """How an object ended whose try came out so."""
    if outcome.kind is Kind.GONE:
        return How.GONE
    return How.COPIED if outcome.sent else How.EQUAL


class PassTally:
    """Objects that have ended, gathered by the pass that waits for them."""

    def __init__(self) -> None:
        self._numbers, self._bytes = Counter[tuple[int, str]](), Counter[int]()

    def add(self, row: OpenObject, how: How) -> None:
        """One more; nothing if no pass waits for it."""
        if row.of_pass is None:
            return
        self._numbers[row.of_pass, how.value] += 1
        if how is How.COPIED:
            self._bytes[row.of_pass] += max(0, row.size)

    def save(self) -> None:
        """Inside of the same transaction."""
        for (pk, how), number in sorted(self._numbers.items()):
            Pass.objects.filter(pk=pk).update(**{how: F(how) + number})
        for pk, size in sorted(self._bytes.items()):
            Pass.objects.filter(pk=pk).update(copied_bytes=F("copied_bytes") + size)
