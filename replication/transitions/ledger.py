"""The ledger: what is noted as lacking at a link's target, and what became of it. Counts change with the rows.

Whoever changes rows of a link holds the link's own row until the transaction ends: so counts are right, and no two ever
wait for each other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import Count, F, Q, Sum

from core.replicating.retries import DAILY
from core.replicating.states import OpenKind, OpenStatus
from db.chunks import chunks
from replication.models import Link, OpenCount, OpenObject, Rule, Shard
from replication.transitions.pass_counts import How, PassTally
from spark_jobs.replicate.lacking import Lack

MOST_OPEN = 1_000_000
"""So many rows a link has at most; what lacks beyond that makes its stretch of keys dirty."""
ROWS_AT_ONCE = 400
"""So many fit into one statement on every database."""
LONGEST_WAIT = timedelta(seconds=DAILY)
"""From one try of an object to the next."""

PENDING = OpenStatus.PENDING.value
DELETE, COPY = OpenKind.DELETE.value, OpenKind.COPY.value
HIDE, PURGE = OpenKind.HIDE.value, OpenKind.PURGE.value
_DELETING = OpenStatus.DELETING.value
_DUE: Mapping[str, str] = {COPY: PENDING, DELETE: _DELETING, HIDE: _DELETING, PURGE: _DELETING}
RENEWED = ["size", "etag", "described", "absent", "since", "next_try", "attempts"]
RENEWED += ["status", "code", "detail", "version"]
Moved = Mapping[tuple[str, str], tuple[int, int]]
"""By status and code: by how many rows and bytes a count changes."""


class Tally:
    """Changes of counts, gathered."""

    def __init__(self) -> None:
        self._numbers, self._bytes = Counter[tuple[str, str]](), Counter[tuple[str, str]]()

    def add(self, status: str, code: str, size: int, number: int = 1) -> None:
        self._numbers[status, code] += number
        self._bytes[status, code] += size

    def take(self, status: str, code: str, size: int, number: int = 1) -> None:
        self.add(status, code, -size, -number)

    def save(self, link_id: int) -> None:
        for (status, code), number in sorted(self._numbers.items()):
            size = self._bytes[status, code]
            if not (number or size):
                continue
            of = {"link_id": link_id, "status": status, "code": code}
            changed = OpenCount.objects.filter(**of).update(number=F("number") + number, bytes=F("bytes") + size)
            if not changed:
                OpenCount.objects.create(**of, number=number, bytes=size)


def hold(link_id: int) -> Link | None:
    """The link, which nobody else changes before the transaction ends; None once it is gone."""
    return Link.objects.select_for_update().filter(pk=link_id).first()


def hold_all(rule_id: int) -> None:
    """The links of a rule, likewise. Who holds several, or the rule or its stretches too, takes them first."""
    list(Link.objects.select_for_update().filter(rule=rule_id).order_by("pk").values_list("pk"))


def open_number(link_id: int) -> int:
    """How many rows it has, by its counts."""
    return OpenCount.objects.filter(link=link_id).order_by().aggregate(n=Sum("number"))["n"] or 0


def note(link: Link, lacks: Sequence[Lack], now: datetime) -> list[bytes]:
    """Note what lacks; gives the keys for which there is no room. Inside of a transaction that holds the link.

    What is noted already stays as it is, unless the source has another object there by now: that one is due at once.
    So is what waits longer than anything does, or was noted later than now: the clock was ahead then. What was to be
    deleted, and is at the source again, is to be copied.
    """
    known = _known(link, lacks)
    tally = Tally()
    changed = [row for lack in lacks if (row := known.get(lack.key)) is not None and _renew(row, lack, now, tally)]
    new = list({lack.key: lack for lack in lacks if lack.key not in known}.values())
    room = max(0, MOST_OPEN - open_number(link.pk)) if new else 0
    for lack in new[:room]:
        tally.add(PENDING, "", lack.size)
    made = [OpenObject(link_id=link.pk, since=now, next_try=now, **lack._asdict()) for lack in new[:room]]
    OpenObject.objects.bulk_create(made, batch_size=ROWS_AT_ONCE)
    OpenObject.objects.bulk_update(changed, [*RENEWED, "kind", "approval"], batch_size=100)
    tally.save(link.pk)
    keep_oldest(link)
    if len(new) > room:
        Link.objects.filter(pk=link.pk).update(overflowed=True, uncompared=True)
    return [lack.key for lack in new[room:]]


def _known(link: Link, lacks: Sequence[Lack]) -> dict[bytes, OpenObject]:
    """What is noted already of these, by key. Mostly nothing is open anywhere near."""
    keys = [lack.key for lack in lacks]
    rows = OpenObject.objects.filter(link=link.pk, doomed="")
    if not keys or not rows.filter(key__gte=min(keys), key__lte=max(keys)).exists():
        return {}
    known: dict[bytes, OpenObject] = {}
    for some in chunks(keys, ROWS_AT_ONCE):
        known |= {bytes(row.key): row for row in rows.filter(key__in=some)}
    return known


def overflow(rule_id: int) -> None:
    """Something may lack at every link of a rule that is no row, until a look through all that begins from now on has
    ended. Inside of a transaction that holds them, or nothing yet."""
    hold_all(rule_id)
    Link.objects.filter(rule=rule_id).update(overflowed=True, uncompared=True)


def all_noted(rule_id: int) -> None:
    """Where no stretch is left to be looked through again the rows tell all that is known to lack, unless the rule has
    been changed since the last look through all began: it may copy more by now. Inside of a transaction that holds the
    links."""
    as_it_is = Rule.objects.filter(pk=rule_id, scan_wanted=False, full_began_at__gte=F("changed_at"))
    if as_it_is.exists() and not Shard.objects.filter(rule=rule_id, dirty=True).exists():
        Link.objects.filter(rule=rule_id, overflowed=True).update(overflowed=False)


def _renew(row: OpenObject, lack: Lack, now: datetime, tally: Tally) -> bool:
    timely = row.since <= now and row.next_try <= now + LONGEST_WAIT
    if row.kind == COPY and timely and lack.is_of(row):
        return False
    row.since = min(row.since, now) if row.kind == COPY else now
    row.kind, row.approval_id = COPY, None
    tally.take(row.status, row.code, row.size)
    tally.add(PENDING, "", lack.size)
    row.size, row.etag, row.described, row.absent = lack.size, lack.etag, lack.described, False
    row.next_try, row.attempts = now, 0
    row.status, row.code, row.detail, row.version = PENDING, "", "", ""
    return True


def keep_oldest(link: Link) -> None:
    """Since when the oldest pending copy waits stands in the link. Inside of a transaction that holds it."""
    pending = OpenObject.objects.filter(link=link.pk, status=PENDING).order_by("since")
    oldest = pending.values_list("since", flat=True).first()
    if oldest != link.oldest_at:
        Link.objects.filter(pk=link.pk).update(oldest_at=oldest)
        link.oldest_at = oldest


Claimed = tuple[str, int, str, str]
"""What a row said when it was taken up: kind, size, ETag and description."""


class Tried(NamedTuple):
    """A row as it was claimed, and what it shall be: None, it goes. `etag`: of what was copied, or found equal, and
    `described` how; "": nobody looked. `how` it ended, for the pass that waits for it."""

    pk: int
    claimed: Claimed
    etag: str
    becomes: Mapping[str, Any] | None
    described: str = ""
    how: How = How.COPIED
    late: datetime | None = None
    """Until when a deletion that got no answer may be carried out."""

    def is_of(self, row: OpenObject) -> bool:
        """Whether what was brought is what a row asks for by now."""
        return row.etag == self.etag and row.described in ("", self.described)


def settle(link: Link, tried: Sequence[Tried]) -> int:
    """Write down what became of rows; gives how many went. Inside of a transaction that holds the link.

    One that was noted anew meanwhile, for the source has another object by now, stays as it was noted.
    """
    tally, going, changed, waited_for = Tally(), list[int](), list[OpenObject](), PassTally()
    by_pk = {one.pk: one for one in tried}
    for some in chunks(list(by_pk), ROWS_AT_ONCE):
        for row in OpenObject.objects.filter(link=link.pk, pk__in=some):
            one = by_pk[row.pk]
            same = row.claimed == one.claimed
            copied = row.kind == one.claimed[0] == COPY and one.is_of(row)
            if one.becomes is None and row.again and one.how is How.EQUAL:
                continue  # somebody wants it sent, and asked for that after it had been looked at
            if one.becomes is None and (same or copied):
                going.append(row.pk)
                waited_for.add(row, one.how)
                tally.take(row.status, row.code, row.size)
            elif one.late is not None and not same:  # whatever is to be done there by now waits for that
                row.not_before = one.late
                changed.append(row)
            elif one.becomes is not None and same:
                tally.take(row.status, row.code, row.size)
                for name, value in one.becomes.items():
                    setattr(row, name, value)
                row.absent = False
                tally.add(row.status, row.code, row.size)
                changed.append(row)
    for some in chunks(going, ROWS_AT_ONCE):
        OpenObject.objects.filter(pk__in=some).delete()
    OpenObject.objects.bulk_update(changed, [*RENEWED, "kind", "approval", "not_before"], batch_size=100)
    tally.save(link.pk)
    keep_oldest(link)
    waited_for.save()
    return len(going)


def retry(link: Link, which: Q, now: datetime, *, counted: Q | None = None) -> int:
    """Have these rows tried at once, as if they never had been; gives how many. Inside of a transaction that holds the
    link. `counted`: the counts of just these rows, where they are all of some kinds; else they are counted.

    However many there are it is one statement, of a rule that follows deletions two. Rows that are so already stay as
    they are: each index that a row is written into again costs as much as the row. Deletions that wait to be let
    through, or for the second look at the source, stay, too.
    """
    rows = OpenObject.objects.filter(which, link=link.pk)
    rule = Rule.objects.filter(pk=link.rule_id).first()
    if rule is None or not rule.judges:
        return _due(link, rows, PENDING, now, counted)
    untried = Q(status=OpenStatus.DELETING.value, attempts=0, code="")
    free = rows.exclude(Q(status=OpenStatus.WAITING.value) | untried)
    return sum(_due(link, free.filter(kind=kind), status, now, None) for kind, status in _DUE.items())


def _due(link: Link, rows: Any, status: str, now: datetime, counted: Q | None) -> int:
    tally, number = Tally(), 0
    for before, code, some, size in _kinds(link, rows, counted):
        tally.take(before, code, size, some)
        tally.add(status, "", size, some)
        number += some
    if not number:
        return 0
    plain = {"status": status, "code": "", "detail": "", "version": "", "attempts": 0}
    rows.exclude(next_try__lte=now, **plain).update(next_try=now, **plain)
    tally.save(link.pk)
    keep_oldest(link)
    return number


def _kinds(link: Link, rows: Any, counted: Q | None) -> list[tuple[str, str, int, int]]:
    """Status, code, number and bytes of rows."""
    if counted is not None:
        counts = OpenCount.objects.filter(counted, link=link.pk, number__gt=0)
        return list(counts.values_list("status", "code", "number", "bytes"))
    kinds = rows.order_by().values("status", "code").annotate(n=Count("pk"), b=Sum("size"))
    return list(kinds.values_list("status", "code", "n", "b"))


def due_now(link: Link, now: datetime) -> None:
    """What waits for its next try need not, for what failed was the link."""
    waits = OpenObject.objects.filter(link=link.pk, next_try__gt=now)
    waits.filter(status=PENDING).update(next_try=now)


def real_counts(link_id: int) -> Mapping[tuple[str, str], tuple[int, int]]:
    """What the counts should be, by the rows: reads all of them, for tests and repairs."""
    sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for status, code, size in OpenObject.objects.filter(link=link_id).values_list("status", "code", "size"):
        sums[status, code][0] += 1
        sums[status, code][1] += size
    return {key: (number, size) for key, (number, size) in sums.items()}
