"""The sweep of a rule: headers, tags and locks of all objects, compared by HEAD, for no listing shows their changes.

It goes through the source's keys in their order, so many requests a second, after each look through all; where it is
stands in the rule's row, written together with what it found. So whoever is killed leaves a few objects to be asked
again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from core.exporting.deadline import Rate
from db import clock
from jobs.lease import Lease
from replication.engine import looking
from replication.models import Rule
from replication.transitions import duties
from spark_jobs.replicate.looking import Asking, Looker

SWEEP_SECONDS = 8.0
"""So long one rule is swept at a time; then others have their turn, and keys that events name."""
AT_ONCE = 64


def is_due(rule: Rule) -> bool:
    """Whether there is something to sweep: the last one has not ended, or began before the last look did."""
    if not rule.sweep_heads_per_second or not rule.terms.all or rule.full_ended_at is None:
        return False
    if rule.swept_to is not None or rule.swept_at is None or rule.swept_at > clock.now():  # by a clock that was ahead
        return True
    return rule.swept_at < rule.full_ended_at


def sweep(rule: Rule, looker: Looker, lease: Lease, sleep: Callable[[float], None] = time.sleep) -> None:
    """Go on with the sweep for a while, if one is due. Raises what the source answers."""
    if not is_due(rule):
        return
    rate, until = Rate(rule.sweep_heads_per_second), time.monotonic() + SWEEP_SECONDS
    each = 1 + len(looker.places)
    some = max(1, min(AT_ONCE, rule.sweep_heads_per_second // each))
    more = True
    while more and time.monotonic() < until and _goes_on(rule):
        after = bytes(rule.swept_to).decode() if rule.swept_to is not None else ""
        named, more = looker.named_after(after)
        for part in _parts(named, some):
            if time.monotonic() >= until:
                return
            sleep(rate.turn(sum(one.requests for one in part) * each))
            _note(rule, looker, lease, [one.key for one in part])
        if not more:
            _end(rule, lease)


def _parts(named: Sequence[Asking], most: int) -> Iterator[list[Asking]]:
    """So many requests to one place together, or a key that takes more."""
    part, requests = list[Asking](), 0
    for one in named:
        if part and requests + one.requests > most:
            yield part
            part, requests = [], 0
        part.append(one)
        requests += one.requests
    if part:
        yield part


def _note(rule: Rule, looker: Looker, lease: Lease, keys: Sequence[str]) -> None:
    lacks = looker.lacking_of(keys)
    with lease.transaction():
        duties.wake_links(looking.note(rule, lacks))
        rule.swept_to = keys[-1].encode()
        Rule.objects.filter(pk=rule.pk).update(swept_to=rule.swept_to)


def _end(rule: Rule, lease: Lease) -> None:
    with lease.transaction():
        rule.swept_to, rule.swept_at = None, clock.now()
        Rule.objects.filter(pk=rule.pk).update(swept_to=None, swept_at=rule.swept_at)


def _goes_on(rule: Rule) -> bool:
    """Whether nobody has paused or deleted the rule, or ended its sweep, meanwhile."""
    same = Rule.objects.filter(pk=rule.pk, sweep_heads_per_second=rule.sweep_heads_per_second)
    return same.filter(paused=False, deleting=False).exists()
