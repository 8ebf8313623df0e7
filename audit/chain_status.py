"""How the chain stands, for whoever shows it."""

from __future__ import annotations

from dataclasses import dataclass

from audit import chain
from audit.models import AuditChain
from audit.verify import start_of_chain


@dataclass(frozen=True, slots=True)
class ChainStatus:
    """The chain's head, which knows what was read again of it; how many events wait; up to which one is sealed."""

    head: AuditChain
    waiting: int
    sealed: int


def chain_status() -> ChainStatus:
    """The chain now. Three queries."""
    return ChainStatus(chain.head(), chain.waiting(), start_of_chain().number)
