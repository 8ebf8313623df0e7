"""What a rule has from the beginning: a stretch that holds every key, due at once, and its duties."""

from __future__ import annotations

from datetime import datetime

from replication.models import Rule, Shard
from replication.transitions import duties


def begin(rule: Rule, now: datetime) -> None:
    """Inside of the transaction that makes it and its links."""
    Shard.objects.create(rule=rule, low=b"", high=None, due_at=now)
    duties.ensure(rule)
    duties.wake(rule)


def scan_now(rule: Rule, now: datetime) -> None:
    """Have all of it compared at once: a look that goes on comes to its end first, and another one follows."""
    Rule.objects.filter(pk=rule.pk).update(scan_wanted=True)
    rule.shards.filter(after=None).update(due_at=now)
    duties.wake(rule)
