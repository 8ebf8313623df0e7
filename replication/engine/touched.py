"""Keys that somebody named: each is looked at, at the source and at every target, before the look through all goes on.

A key, not an event: what an event said, how often and in which order, does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from db import clock
from db.chunks import chunks
from jobs.lease import Lease
from replication.engine import looking
from replication.models import OpenObject, Rule, Touched
from replication.transitions import doomed, duties, ledger
from replication.transitions.doomed import Doomed
from replication.transitions.ledger import HIDE
from spark_jobs.replicate.looking import Looker

AT_ONCE = 400


def look(rule: Rule, looker: Looker, lease: Lease, over: Callable[[], bool]) -> None:
    """Look at the keys until there are none, or the time is up. Raises what the source answers."""
    while not over():
        rows = list(Touched.objects.filter(rule=rule.pk).order_by("pk")[:AT_ONCE])
        if not rows:
            return
        keys = [bytes(row.key) for row in rows]
        tried = OpenObject.objects.filter(link__rule=rule.pk, key__in=keys).values_list("link", flat=True)
        beside = {bytes(row.key).decode() for row in rows if row.beside}
        lacks = looker.lacking_of([key.decode() for key in keys], tried=set(tried), beside=beside)
        with lease.transaction():
            duties.wake_links(looking.note(rule, lacks))
            _note_hidden(looker)
            _forget(rows)


def _note_hidden(looker: Looker) -> None:
    """It waits for the look that judges it, and the link is not up to date until then. Inside of a transaction that
    holds the links."""
    for link_id, found in sorted(looker.hidden.items()):
        link = ledger.hold(link_id)
        if link is not None and not link.removing:
            doomed.add(link, [Doomed(HIDE, *one) for one in found], clock.now())


def _forget(rows: Sequence[Touched]) -> None:
    """But for those that were named again meanwhile, or are just being named."""
    at = {row.pk: row.at for row in rows}
    for some in chunks(rows):
        free = Touched.objects.select_for_update(skip_locked=True).order_by("key")
        now = free.filter(pk__in=[row.pk for row in some]).values_list("pk", "at")
        Touched.objects.filter(pk__in=[pk for pk, named in now if named == at[pk]]).delete()
