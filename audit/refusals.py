"""Refused attempts. Nobody can flood the record by them: what repeats is counted, and told once its time is over.

A user's first attempt at something is an event at once; the same again in the same ten minutes is counted, and told
by one more event when they are over. Strangers (no credentials, or wrong ones) are counted by hour, kind and network.
"""

from __future__ import annotations

import hashlib
import logging
from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import F, Max, Min, Sum
from django.utils import timezone

from audit.models import AuditEvent, RefusalCount
from web import requests

log = logging.getLogger("lakemirror.audit")

WINDOW = timedelta(minutes=10)
MOST_EVENTS = 30
"""So many different things that a user is refused are told in a window; of all others, how many."""
HOUR = timedelta(hours=1)
MOST_NETWORKS = 200
"""So many networks are told apart in an hour, for each kind; all others count as one."""
KEPT = timedelta(days=90)
OTHERS = "others"


def refused(user: Any, action: str, arn: str) -> None:
    """A user tried what they may not do. Never fails: the attempt is refused all the same."""
    actor, arn = user.get_username(), _storable(arn)[:1400]
    try:
        with transaction.atomic():
            if refusal := _count(timezone.now(), WINDOW, actor=actor, action=action[:64], arn=arn, most=MOST_EVENTS):
                _tell(actor, refusal["action"], refusal["arn"], 1, user=user)
    except DatabaseError as error:
        log.warning("a refused attempt of %s at %s could not be written down: %s", actor, action, error)


def count_stranger(kind: str, network: str, times: int) -> None:
    """Somebody who is not known was refused this many times. Raises DatabaseError; nothing is counted then."""
    with transaction.atomic():
        _count(timezone.now(), HOUR, action=kind, network=network, most=MOST_NETWORKS, times=times)


def _count(
    now: datetime,
    window: timedelta,
    *,
    action: str,
    actor: str = "",
    arn: str = "",
    network: str = "",
    most: int,
    times: int = 1,
) -> dict[str, str] | None:
    """Count so many. What is to be told at once, if it is the first of its kind in its window."""
    since = _begin(now, window)
    refusal = {"actor": actor, "action": action, "arn": arn, "network": network}
    if _again(since, refusal, now, times):
        return None
    kinds = RefusalCount.objects.filter(since=since, actor=actor)
    if not actor:
        kinds = kinds.filter(action=action)
    if kinds.count() >= most:
        refusal |= {"action": "*", "arn": "*"} if actor else {"network": OTHERS}
        if _again(since, refusal, now, times):
            return None
    try:
        with transaction.atomic():
            row = RefusalCount(since=since, key=_key(refusal), last_at=now, told=bool(actor), times=times, **refusal)
            row.save(force_insert=True)
    except IntegrityError:
        _again(since, refusal, now, times)
        return None
    return refusal


def _begin(now: datetime, window: timedelta) -> datetime:
    return datetime.fromtimestamp(now.timestamp() // window.total_seconds() * window.total_seconds(), tz=now.tzinfo)


def _storable(text: str) -> str:
    """Without what databases refuse: NUL, and halves of characters."""
    return text.replace("\0", "?").encode("utf-8", "replace").decode()


def _key(refusal: dict[str, str]) -> str:
    return hashlib.sha256("\n".join(refusal.values()).encode("utf-8")).hexdigest()


def _again(since: datetime, refusal: dict[str, str], now: datetime, times: int) -> bool:
    rows = RefusalCount.objects.filter(since=since, actor=refusal["actor"], key=_key(refusal))
    return rows.update(times=F("times") + times, last_at=now) == 1


def _tell(actor: str, action: str, arn: str, times: int, *, user: Any = None, **more: Any) -> None:
    AuditEvent.objects.create(
        actor=actor,
        key_id=getattr(user, "acting_key_id", ""),
        action=action,
        arn=arn,
        refused=True,
        times=times,
        **requests.traces(),
        **more,
    )


def tell_counted() -> int:
    """Write down how often what was refused in windows that are over came again; gives how many events that made."""
    over = timezone.now() - WINDOW
    rows = RefusalCount.objects.exclude(actor="").filter(since__lte=over, times__gt=F("told")).order_by("pk")
    return sum(_tell_rest(row) for row in rows[:200])


@transaction.atomic
def _tell_rest(row: RefusalCount) -> bool:
    """One row's; false if another process did it, or it was counted on just now."""
    if not RefusalCount.objects.filter(pk=row.pk, told=row.told, times=row.times).update(told=row.times):
        return False
    after = {"since": _utc(row.since), "last": _utc(row.last_at)}
    _tell(row.actor, row.action, row.arn, row.times - row.told, after=after)
    return True


def _utc(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def prune() -> int:
    """Forget counts that are old; gives how many."""
    now = timezone.now()
    old = RefusalCount.objects.filter(actor="", since__lt=now - KEPT).delete()[0]
    reported = RefusalCount.objects.exclude(actor="").filter(since__lt=now - HOUR, told=F("times"))
    return old + reported.delete()[0]


def of_strangers(now: datetime) -> list[dict[str, Any]]:
    """How often strangers were refused in the last 24 hours, by kind and network, the most first."""
    rows = RefusalCount.objects.filter(actor="", since__gt=now - 25 * HOUR).values("action", "network")
    counted = rows.annotate(total=Sum("times"), first=Min("since"), last=Max("last_at"))
    return list(counted.order_by("-total", "action", "network")[:20])
