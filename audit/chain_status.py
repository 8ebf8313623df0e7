"""How the chain stands, for whoever shows it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from audit import chain
from audit.verify import start_of_chain


@dataclass(frozen=True, slots=True)
class ChainStatus:
    """The chain's head; up to where it was read again and when; what is wrong, or ""; what waits; what is sealed."""

    number: int
    digest: str
    whole_number: int
    whole_at: datetime | None
    wrong: str
    waiting: int
    sealed: int


def chain_status() -> ChainStatus:
    """The chain now. Three queries."""
    head = chain.head()
    return ChainStatus(
        head.number,
        head.digest,
        head.whole_number,
        head.whole_at,
        head.wrong,
        chain.waiting(),
        start_of_chain().number,
    )
