"""What is done for the audit every few seconds, by whichever clock comes by."""

from __future__ import annotations

from audit import chain, refusals, seal, verify

MOST = 5000
"""So many events are chained, or removed, at a time: who comes by has other things to do."""


def look_round() -> None:
    """Tell what was counted, chain what is new, read some of it again, finish a sealing that broke off."""
    refusals.tell_counted()
    refusals.prune()
    chain.append_waiting(MOST)
    seal.remove_sealed(MOST)
    verify.check_some()
