"""Open objects of links, as lists ask for them: a page costs as much among a million as among a hundred.

Each list goes along an index: by id, that is in the order in which they were noted, or below a prefix by key. So a page
is found where the one before it ended, and nothing is sorted or skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import BinaryField, Sum, Value
from django.db.models.functions import Coalesce

from core.errors import Invalid
from replication.models import Link, OpenCount, OpenObject
from web.paging import number_of

LONGEST_PREFIX = 1024
FEW = 20_000
"""So many rows may be looked through for one page."""
CHUNK = 2000
_BY_KEY = "k"
"""What an offset begins with that is a key; others are ids."""


def open_objects(links: Any, *, status: str = "", code: str = "", prefix: str = "") -> Any:
    """Those of a link, or of several, with a status, a code, a key that begins with a prefix; "" is any."""
    rows = OpenObject.objects.filter(link__in=[links] if isinstance(links, Link) else links)
    rows = rows.filter(status=status) if status else rows
    rows = rows.filter(code=code) if code else rows
    return _below(rows, prefix.encode()[:LONGEST_PREFIX]) if prefix else rows


@dataclass(frozen=True, slots=True)
class OpenPages:
    """Open objects of a link, page by page: filtered as by `open_objects`."""

    link: Link
    status: str = ""
    code: str = ""
    prefix: str = ""

    def page(self, after: str, amount: int) -> tuple[list[OpenObject], str]:
        """So many rows behind an offset ("" from the start), and the offset of the next page ("" there is none). Raises
        Invalid for what is no offset."""
        by_key = after.startswith(_BY_KEY) if after else self._goes_by_key()
        rows = self._by_key(after[1:]) if by_key else self._by_id(after)
        some = list(rows[: amount + 1])
        if len(some) <= amount:
            return some, ""
        last = some[amount - 1]
        return some[:amount], f"{_BY_KEY}{bytes(last.key).hex()}" if by_key else str(last.pk)

    def each(self) -> Iterator[OpenObject]:
        """All of them, however many, without a cursor."""
        after = ""
        while True:
            rows, after = self.page(after, CHUNK)
            yield from rows
            if not after:
                return

    def _goes_by_key(self) -> bool:
        """Below a prefix, unless so few are left by the other filters that each of these may be looked at."""
        if not self.prefix:
            return False
        if not (self.status or self.code):
            return True
        counts = OpenCount.objects.filter(link=self.link.pk)
        counts = counts.filter(status=self.status) if self.status else counts
        counts = counts.filter(code=self.code) if self.code else counts
        return (counts.order_by().aggregate(n=Sum("number"))["n"] or 0) > FEW

    def _by_id(self, after: str) -> Any:
        """With a prefix few are left by the other filters: it must not lead a database to the index of keys, whose rows
        it would sort."""
        rows = open_objects(self.link, status=self.status, code=self.code).order_by("pk")
        if self.prefix:
            plain = Coalesce("key", Value(b"", output_field=BinaryField()), output_field=BinaryField())
            rows = _below(rows.alias(plain_key=plain), self.prefix.encode()[:LONGEST_PREFIX], "plain_key")
        return rows.filter(pk__gt=number_of(after, "after")) if after else rows

    def _by_key(self, after: str) -> Any:
        """The other filters must not lead a database to their indexes: it would sort all that these give."""
        rows = open_objects(self.link, prefix=self.prefix).order_by("key")
        for name, value in (("status", self.status), ("code", self.code)):
            if value:
                rows = rows.alias(**{f"plain_{name}": Coalesce(name, Value(""))}).filter(**{f"plain_{name}": value})
        return rows.filter(key__gt=_key_of(after)) if after else rows


def _key_of(offset: str) -> bytes:
    try:
        return bytes.fromhex(offset[: 2 * LONGEST_PREFIX])
    except ValueError:
        raise Invalid(f"'{offset[:40]}' is not a next_offset of this list", field="after") from None


def _below(rows: Any, prefix: bytes, key: str = "key") -> Any:
    """Keys that begin with bytes: from these on, up to the first that does not."""
    rows = rows.filter(**{f"{key}__gte": prefix})
    stem = prefix.rstrip(b"\xff")
    return rows.filter(**{f"{key}__lt": stem[:-1] + bytes([stem[-1] + 1])}) if stem else rows
