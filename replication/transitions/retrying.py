"""*Retry* of a link's open objects: of few at once, of very many some at a time, by the link's duty.

A million rows take half a minute to change. Nobody's request lasts that long, and nobody else waits so long for the
database.
"""

from __future__ import annotations

import time
from datetime import datetime

from django.db.models import Max, Q, Sum

from core.replicating.states import OpenStatus
from db import clock
from jobs.lease import Lease
from replication.models import Link, OpenCount, OpenObject, RetryRequest, Rule
from replication.transitions import ledger

AT_ONCE = 10_000
"""So many are changed while whoever asked waits."""
CHUNK = 5_000
RETRYING_SECONDS = 4.0
"""So long a round of a link makes rows due, before it copies."""


def retry(link: Link, code: str, now: datetime) -> int:
    """Have all open objects of a link tried again, or those with a code; gives how many. Inside of a transaction that
    holds the link."""
    number = _number(link, code)
    if number <= AT_ONCE:
        which = _of_code(code)
        return ledger.retry(link, which, now, counted=which)
    newest = OpenObject.objects.filter(link=link.pk).aggregate(pk=Max("pk"))["pk"]
    values = {"done_up_to": 0, "ends_at": newest or 0}
    RetryRequest.objects.update_or_create(link_id=link.pk, code=code, defaults=values)
    return number


def carry_out(link_id: int, lease: Lease) -> bool:
    """Go on with what somebody asked for, for some seconds; gives whether something is left. Raises Fenced."""
    until = time.monotonic() + RETRYING_SECONDS
    while (request := RetryRequest.objects.filter(link=link_id).first()) is not None:
        lease.renew()
        _make_some_due(request, lease)
        if time.monotonic() >= until:
            return RetryRequest.objects.filter(link=link_id).exists()
    return False


def _number(link: Link, code: str) -> int:
    """How many that is, by the counts. Those that wait to be let through, or for the second look, are not meant."""
    counts = OpenCount.objects.filter(_of_code(code), link=link.pk).order_by()
    rule = Rule.objects.filter(pk=link.rule_id).first()
    if rule is not None and rule.judges:
        untried = Q(status=OpenStatus.DELETING.value, code="")
        counts = counts.exclude(Q(status=OpenStatus.WAITING.value) | untried)
    return counts.aggregate(n=Sum("number"))["n"] or 0


def _of_code(code: str) -> Q:
    return Q(code=code) if code else Q()


def _make_some_due(request: RetryRequest, lease: Lease) -> None:
    """The next rows, and keep how far it is. Somebody may have asked anew meanwhile: then that counts."""
    with lease.transaction():
        link = ledger.hold(request.link_id)
        now = RetryRequest.objects.filter(pk=request.pk).first()
        if link is None or now is None:
            return
        left = Q(pk__gt=now.done_up_to, pk__lte=now.ends_at) & _of_code(now.code)
        rows = OpenObject.objects.filter(left, link=link.pk).order_by("pk")
        last = next(iter(rows.values_list("pk", flat=True)[CHUNK - 1 : CHUNK]), now.ends_at)
        ledger.retry(link, left & Q(pk__lte=last), clock.now())
        if last < now.ends_at:
            RetryRequest.objects.filter(pk=now.pk).update(done_up_to=last)
        else:
            now.delete()
