"""Deletions of a link: noted while a look goes on, judged together when it has ended, let through or asked for.

Each is an open object of kind `delete`. It waits until the whole look has ended; then those of a link are let through,
or wait for an approval of exactly this list. Counts change with the rows. Whatever is called here is inside of a
transaction that holds the link.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Q, Sum

from core.replicating.deletes import (
    APPROVAL_DAYS,
    FIRST_KEYS,
    SECONDS_BETWEEN,
    UNANSWERED_SECONDS,
    Own,
    needs_approval,
    of_last_day,
)
from core.replicating.states import ApprovalState, OpenStatus
from db import clock
from db.chunks import chunks
from replication.models import Approval, Link, OpenObject, Rule, ShardManifest
from replication.transitions import doomed, ledger, manifests
from replication.transitions.doomed import FAR
from replication.transitions.ledger import COPY, DELETE, HIDE, PENDING, ROWS_AT_ONCE, Tally
from replication.transitions.pass_counts import How, PassTally

WAITING, DELETING = OpenStatus.WAITING.value, OpenStatus.DELETING.value
UNASKED = Q(approval=None)
_CHANGED = [*ledger.RENEWED, "kind", "approval", "of_pass", "again"]


def known_in(link_id: int, low: bytes, high: bytes | None) -> dict[str, OpenObject]:
    """The deletions that are noted of a stretch, by key."""
    rows = OpenObject.objects.filter(link=link_id, key__gt=low, kind=DELETE)
    rows = rows if high is None else rows.filter(key__lte=high)
    return {row.name: row for row in rows}


def note(link: Link, stretch: tuple[bytes, bytes | None], gone: Sequence[Own], now: datetime) -> None:
    """These of a stretch are to be deleted at the target, and no others."""
    tally, found = Tally(), known_in(link.pk, *stretch)
    hidden = manifests.disowned(link.pk, [own.key.encode() for own in gone])
    wanted = {own.key: own for own in gone if own.key.encode() not in hidden}
    _drop(link, [row for key, row in found.items() if key not in wanted], tally, now)
    changed = [row for key, row in found.items() if key in wanted and row.etag != wanted[key].etag]
    changed += _to_copy(link.pk, [key.encode() for key in wanted if key not in found])
    waited_for = PassTally()
    for row in changed:
        waited_for.add(row, How.GONE)
        tally.take(row.status, row.code, row.size)
        _waits(row, wanted[row.name], now)
        tally.add(row.status, row.code, row.size)
    OpenObject.objects.bulk_update(changed, _CHANGED, batch_size=100)
    taken = found.keys() | {row.name for row in changed}
    _make(link, [own for key, own in wanted.items() if key not in taken], tally, now)
    tally.save(link.pk)
    waited_for.save()
    ledger.keep_oldest(link)


def _make(link: Link, new: Sequence[Own], tally: Tally, now: datetime) -> None:
    # Half of the rows are left to copies: these go on while deletions wait for somebody.
    room = max(0, ledger.MOST_OPEN // 2 - ledger.open_number(link.pk)) if new else 0
    made = [_waits(OpenObject(link_id=link.pk, key=own.key.encode()), own, now) for own in new[:room]]
    for row in made:
        tally.add(row.status, row.code, row.size)
    OpenObject.objects.bulk_create(made, batch_size=ROWS_AT_ONCE)
    if len(new) > room:
        Link.objects.filter(pk=link.pk).update(unnoted_deletes=True)


def _to_copy(link_id: int, keys: Sequence[bytes]) -> list[OpenObject]:
    """What was to be copied there, and is gone at the source by now."""
    return [
        row
        for some in chunks(list(keys), ROWS_AT_ONCE)
        for row in OpenObject.objects.filter(link=link_id, key__in=some)
    ]


def _waits(row: OpenObject, own: Own, now: datetime) -> OpenObject:
    row.kind, row.status, row.approval_id = DELETE, WAITING, None
    row.of_pass, row.again = None, False
    row.size, row.etag, row.code, row.detail, row.attempts = own.size, own.etag, "", "", 0
    row.since, row.next_try = now, now + FAR
    return row


def _drop(link: Link, rows: Iterable[OpenObject], tally: Tally, now: datetime) -> None:
    """They are not to be deleted any more. One that may have been, or be just under way, is compared once more."""
    going, again = list[int](), list[OpenObject]()
    rows = list(rows)
    doomed.remove([row for row in rows if row.kind != DELETE], tally)
    for row in (row for row in rows if row.kind == DELETE):
        late = row.not_before is not None and row.not_before > now
        asked = row.status == WAITING and row.approval_id is not None
        tally.take(row.status, row.code, row.size)
        if late or (link.writes_until is not None and not asked):
            again.append(_to_compare(row, now))
            tally.add(row.status, row.code, row.size)
        else:
            going.append(row.pk)
    for some in chunks(going, ROWS_AT_ONCE):
        OpenObject.objects.filter(pk__in=some).delete()
    OpenObject.objects.bulk_update(again, _CHANGED, batch_size=100)


def _to_compare(row: OpenObject, now: datetime) -> OpenObject:
    """Whatever the source has there by now is to be at the target; mostly it is."""
    row.kind, row.status, row.code, row.detail, row.approval_id = COPY, PENDING, "", "", None
    row.etag, row.since, row.next_try, row.attempts = "", now, row.not_before or now, 0
    return row


# --- the end of a look ------------------------------------------------------------------------------------------------


def begin_look(rule_id: int) -> None:
    """A look through all begins: what it finds is judged when it has ended. Holds the rule's links."""
    Link.objects.filter(rule=rule_id).update(unsure_deletes=False, unnoted_deletes=False)


def doubt_clocks(rule_id: int, now: datetime) -> None:
    """Times that a clock noted which was ahead hold up nothing for ever."""
    rows = OpenObject.objects.filter(link__rule=rule_id)
    longest = now + timedelta(seconds=UNANSWERED_SECONDS)
    rows.filter(not_before__gt=longest).update(not_before=longest)
    far = rows.deletes().exclude(status=WAITING).filter(next_try__gt=now + ledger.LONGEST_WAIT)
    far.update(next_try=now + timedelta(seconds=SECONDS_BETWEEN))


def end_look(rule: Rule, now: datetime) -> list[int]:
    """A look through all has ended: what it found is let through, or asked for; gives the links that have something to
    do. Nothing is of a link that it could not compare, that is frozen or stale, or that waits for an answer."""
    woken = []
    whole = Link.objects.filter(rule=rule.pk, uncompared=False, unsure_deletes=False)
    for link in whole.filter(frozen_since=None, stale_since=None).order_by("pk"):
        expire(link, now)
        if rule.judges and not Approval.objects.filter(link=link.pk, state=ApprovalState.WAITING.value).exists():
            woken += [link.pk] if _judge(rule, link, now) else []
    return woken


def _judge(rule: Rule, link: Link, now: datetime) -> bool:
    """Whether anything was let through."""
    noted = OpenObject.objects.filter(link=link.pk, status=WAITING, approval=None)
    sums = noted.aggregate(n=Count("pk"), b=Sum("size"))
    number, size = sums["n"], sums["b"] or 0
    if not number:
        return False
    by_hour = of_last_day(link.deletes_by_hour, hour := int(now.timestamp() // 3600))
    lately = sum(by_hour.values())
    of, too_many = _measured(rule, link, noted, lately)
    if link.unnoted_deletes or too_many or _may_be_somebodys(rule, link):
        first = [row.name for row in noted.order_by("key")[:FIRST_KEYS]]
        approval = Approval.objects.create(
            link=link,
            number=number,
            bytes=size,
            of=of,
            lately=lately,
            more=link.unnoted_deletes,
            first_keys=first,
            asked_at=now,
            expires_at=now + timedelta(days=APPROVAL_DAYS),
        )
        noted.update(approval=approval)
        return False
    by_hour[str(hour)] = by_hour.get(str(hour), 0) + number
    Link.objects.filter(pk=link.pk).update(deletes_by_hour=by_hour)
    return let_through(link, Q(approval=None), now) > 0


def _may_be_somebodys(rule: Rule, link: Link) -> bool:
    """Whether a link that leads both ways is compared wholly for the first time: what it found to be deleted is what
    other links know of, and none of it is its own yet."""
    return rule.markers and rule.both_ways and link.compared_at is None


def _measured(rule: Rule, link: Link, noted: Any, lately: int) -> tuple[int, bool]:
    """Of how many these are, and whether that is more than the rule does by itself. What is hidden is measured by what
    the target shows, what is deleted by what of it is the link's own."""
    had = ShardManifest.objects.filter(link=link.pk).aggregate(listed=Sum("objects_listed"), shown=Sum("shown_objects"))
    hidden = noted.filter(kind=HIDE).count()
    others = noted.exclude(kind=HIDE).count()
    bounds = rule.delete_percent, rule.delete_most
    # Where rules lead both ways some may be what no look has seen at both ends yet.
    listed, shown = max(had["listed"] or 0, others), had["shown"] or 0
    too_many = (hidden > 0 and needs_approval(hidden, shown, *bounds, lately)) or (
        others > 0 and needs_approval(others, listed, *bounds, lately)
    )
    return listed if others else shown, too_many


def let_through(link: Link, which: Q, now: datetime) -> int:
    """These deletions are due, each a minute after the source was seen to lack it; what a marker hides, at once. Gives
    how many."""
    rows = OpenObject.objects.filter(which, link=link.pk, status=WAITING)
    sums = rows.aggregate(n=Count("pk"), b=Sum("size"))
    number = int(sums["n"])
    if number:
        rows.filter(kind=HIDE).update(next_try=now)
        rows.exclude(kind=HIDE).update(next_try=now + timedelta(seconds=SECONDS_BETWEEN))
        rows.update(status=DELETING)
        _move(link.pk, WAITING, DELETING, number, sums["b"] or 0)
    return number


def hold_back(link: Link, now: datetime) -> None:
    """What was let through, be it that it has failed since, or waits for an approval, has to be judged anew."""
    hold_back_unasked(link, now, Q())
    waiting = Approval.objects.filter(link=link.pk, state=ApprovalState.WAITING.value)
    OpenObject.objects.filter(approval__in=waiting).update(approval=None)
    waiting.update(state=ApprovalState.EXPIRED.value, decided_at=now)


def hold_back_unasked(link: Link, now: datetime, which: Q = UNASKED) -> None:
    """What was let through without an approval has to be judged anew."""
    rows = OpenObject.objects.filter(which, link=link.pk).deletes().exclude(status=WAITING)
    kinds = rows.order_by().values_list("status", "code").annotate(n=Count("pk"), b=Sum("size"))
    tally = Tally()
    for status, code, number, size in kinds:
        tally.take(status, code, size, number)
        tally.add(WAITING, "", size, number)
    plain: dict[str, Any] = {"code": "", "detail": "", "attempts": 0}
    rows.update(status=WAITING, approval=None, next_try=now + FAR, **plain)
    tally.save(link.pk)


def _move(link_id: int, before: str, after: str, number: int, size: int) -> None:
    tally = Tally()
    tally.take(before, "", size, number)
    tally.add(after, "", size, number)
    tally.save(link_id)


# --- approvals --------------------------------------------------------------------------------------------------------


def expire(link: Link, now: datetime) -> None:
    """What nobody has answered in time is asked for anew, as the next look finds it."""
    ahead = Q(asked_at__gt=now)  # a clock was
    late = Approval.objects.filter(ahead | Q(expires_at__lte=now), link=link.pk, state=ApprovalState.WAITING.value)
    OpenObject.objects.filter(approval__in=late).update(approval=None)
    late.update(state=ApprovalState.EXPIRED.value, decided_at=now)


def decide(approval: Approval, state: ApprovalState, by: str, now: datetime) -> int:
    """Approve exactly its list, or drop it until something changes; gives of how many objects it still was. The caller
    has seen that it waits."""
    link = approval.link
    which = Q(approval=approval.pk)
    approved = state is ApprovalState.APPROVED
    number = let_through(link, which, now) if approved else drop(link, which, disowning=True)
    decided: dict[str, Any] = {"state": state.value, "decided_at": now, "decided_by": by[:150]}
    Approval.objects.filter(pk=approval.pk).update(**decided)
    return number


def drop(link: Link, which: Q, *, disowning: bool) -> int:
    """Deletions are not done; gives how many. `disowning`: what they named is not the link's any more, so that no look
    finds them again."""
    rows = OpenObject.objects.filter(which, link=link.pk).deletes()
    number, tally, now = 0, Tally(), clock.now()
    while some := list(rows.order_by("pk")[:ROWS_AT_ONCE]):
        if disowning:
            manifests.disown(link.pk, [bytes(row.key) for row in some if row.kind == DELETE])
            doomed.reject(link, some)
        number += len(some)
        _drop(link, some, tally, now)
    tally.save(link.pk)
    return number
