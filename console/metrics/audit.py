"""The audit's chain as figures: a scrape keeps a copy of its head elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from audit.chain_status import chain_status
from web.prometheus import Gauge

DIGITS = 13
"""So many hexadecimal digits a sample can hold exactly."""


def gauges() -> Iterator[Gauge]:
    """How long the chain is, its head, and what was found when it was read again."""
    now = chain_status()
    figures = {
        "audit_chain_events": ("events in the audit chain", now.head.number),
        "audit_chain_head": (
            "the first 13 hexadecimal digits of its head's digest, as a number",
            int(now.head.digest[:DIGITS], 16),
        ),
        "audit_chain_broken": ("1 if an event was found to be changed or missing", bool(now.head.wrong)),
        "audit_waiting_events": ("events not chained yet", now.waiting),
    }
    for name, (words, value) in figures.items():
        gauge = Gauge(name, words)
        gauge.add("", value)
        yield gauge
