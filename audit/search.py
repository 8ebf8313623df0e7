"""Looking for events: the last ones first, by what an index finds at once, and the rest of the filters in slices.

However many events there are, a look goes through at most LOOKED of them. Where that is not enough for a page, the
page says where it ended, and the next one goes on from there: nothing is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from audit.models import AuditEvent
from core.errors import Invalid

FILTERS = ("actor", "action", "resource", "from", "to", "refused", "text")
LONGEST = {"actor": 128, "action": 64, "resource": 1400, "text": 200}
LOOKED = 5_000
_TEXTS = ("actor", "key_id", "action", "arn", "reason", "request_id", "address", "before_text", "after_text")
_NEWEST = ("-at", "-pk")


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """Which events. `until` is not among them; action and resource may end with `*`, and mean what begins so then."""

    actor: str = ""
    action: str = ""
    resource: str = ""
    since: datetime | None = None
    until: datetime | None = None
    refused: bool = False
    text: str = ""


@dataclass(frozen=True, slots=True)
class Look:
    """Some events, and the place after which the next look goes on, "" when there are no more."""

    rows: list[AuditEvent]
    next: str


def asked_for(given: Mapping[str, str]) -> AuditQuery:
    """The filters as a query has them. Raises Invalid, naming the one that is wrong."""
    named = {name: given.get(name, "").strip() for name in FILTERS}
    for name, most in LONGEST.items():
        if len(named[name]) > most:
            raise Invalid(f"has more than {most} characters", field=name)
    if named["refused"] not in ("", "true"):
        raise Invalid("must be true or left out", field="refused")
    return AuditQuery(
        named["actor"],
        named["action"],
        named["resource"],
        time_of(named["from"], "from") if named["from"] else None,
        time_of(named["to"], "to", of_a_day=timedelta(days=1)) if named["to"] else None,
        bool(named["refused"]),
        named["text"],
    )


def time_of(given: str, field: str, *, of_a_day: timedelta = timedelta(0)) -> datetime:
    """A moment, or a day: its beginning, or so much later. Raises Invalid, naming the field."""
    try:
        at = datetime.fromisoformat(given)
        at = at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
        return at + of_a_day if len(given) == len("2026-01-31") else at
    except (ValueError, OverflowError) as error:
        text = f"'{given[:40]}' is not a time: use 2026-01-31 or 2026-01-31T12:00:00Z"
        raise Invalid(text, field=field) from error


def look(query: AuditQuery, *, after: str = "", amount: int) -> Look:
    """At most `amount` of the events, the last first, after the place that a look before gave."""
    first, rest = _split(query)
    rows = _in_time(query, after).filter(first).order_by(*_NEWEST)
    if not rest:
        return _page(list(rows[: amount + 1]), amount)
    some = _with_texts(query).filter(rest, pk__in=rows.values("pk")[:LOOKED]).order_by(*_NEWEST)
    page = _page(list(some[: amount + 1]), amount)
    if page.next:
        return page
    end = rows.only("at", "pk")[LOOKED - 1 : LOOKED].first()
    return Look(page.rows, _place(end) if end else "")


def everything(query: AuditQuery) -> Iterator[AuditEvent]:
    """All of them, look by look."""
    after, more = "", True
    while more:
        page = look(query, after=after, amount=1000)
        yield from page.rows
        after, more = page.next, bool(page.next)


def _split(query: AuditQuery) -> tuple[Q, Q]:
    """The filter that an index finds at once, and the others."""
    exact, rest = [], Q()
    for field, value in (("arn", query.resource), ("actor", query.actor), ("action", query.action)):
        if value.endswith("*") and value != "*" and field != "actor":
            rest &= Q(**{f"{field}__startswith": value[:-1]})
        elif value:
            exact.append(Q(**{field: value}))
    if query.refused:
        exact.append(Q(refused=True))
    for condition in exact[1:]:
        rest &= condition
    if query.text:
        any_of = Q()
        for field in _TEXTS:
            any_of |= Q(**{f"{field}__icontains": query.text})
        rest &= any_of
    return (exact[0] if exact else Q()), rest


def _with_texts(query: AuditQuery) -> QuerySet[AuditEvent]:
    rows = AuditEvent.objects.all()
    if not query.text:
        return rows
    return rows.annotate(before_text=Cast("before", TextField()), after_text=Cast("after", TextField()))


def _in_time(query: AuditQuery, after: str) -> QuerySet[AuditEvent]:
    rows = AuditEvent.objects.all()
    if query.since:
        rows = rows.filter(at__gte=query.since)
    if query.until:
        rows = rows.filter(at__lt=query.until)
    if after:
        at, pk = _read_place(after)
        rows = rows.filter(at__lte=at).exclude(at=at, pk__gte=pk)
    return rows


def _page(rows: list[AuditEvent], amount: int) -> Look:
    return Look(rows[:amount], _place(rows[amount - 1]) if len(rows) > amount else "")


def _place(row: AuditEvent) -> str:
    """An event's place in the order, as text for an address."""
    return f"{row.at.astimezone(UTC):%Y%m%d%H%M%S%f}-{row.pk}"


def _read_place(given: str) -> tuple[datetime, int]:
    at, _, pk = given.partition("-")
    if at.isascii() and len(at) == 20 and pk.isascii() and pk.isdigit() and len(pk) <= 18:
        try:
            return datetime.strptime(at, "%Y%m%d%H%M%S%f").replace(tzinfo=UTC), int(pk)
        except ValueError:
            pass
    raise Invalid(f"'{given[:40]}' is not a next_offset of this list", field="after")
