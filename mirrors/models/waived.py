"""Which objects are waived at a mirror? And how an object is told by its address."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from typing import Any

from django.db.models import Count

from core.mirroring.object_check import WAIVABLE, address_hash
from mirrors.models.mirror import Mirror, WaivedObject
from mirrors.models.problem import Problem
from mirrors.models.validation import Blocker

TOLD = 20
"""A certificate names so many waivers, and objects of each."""


def stored_address(address: str) -> str:
    """An address as a column can hold it."""
    return address.replace("\0", "\\x00")


def is_full(row: Blocker) -> bool:
    """Whether a blocker's address is a URI of its own; rows of older versions go by how it looks."""
    return "://" in row.address if row.full is None else row.full


@dataclass(frozen=True, slots=True)
class WaivedAddresses:
    """The objects that are waived at a mirror: hashes of their addresses, and whether these are URIs of their own."""

    known: frozenset[tuple[str, bool]]

    def have(self, problem: Problem) -> bool:
        """Whether what is missing or wrong is such an object, whatever is wrong with it."""
        if not self.known or problem.kind != Blocker.Kind.OBJECT:
            return False
        full = "://" in problem.address if problem.full is None else problem.full
        return (address_hash(stored_address(problem.address)), full) in self.known

    def accept(self, problem: Problem) -> bool:
        """Whether history may lack it: it is waived and not there, or gone at both sides."""
        return problem.gone_at_source or (problem.reason in WAIVABLE and self.have(problem))


def waived_addresses(mirror: Mirror) -> WaivedAddresses:
    """As they are now. What is decided from it is written under the mirror's lock, which who waives holds too."""
    rows = WaivedObject.objects.filter(mirror=mirror, waiver__mirror=mirror)
    return WaivedAddresses(frozenset(rows.values_list("address_hash", "full")))


def is_accepted(row: Blocker) -> bool:
    """The same of what was written down."""
    return row.gone_at_source or row.is_waived


def told_waivers(mirror: Mirror) -> list[dict[str, Any]]:
    """What was waived at a mirror until now, the last ones first: beside a certificate, which tells of one commit and
    not of what it descends from. So many waivers, and of each so many commits and objects, are named."""
    rows = mirror.waivers.order_by("-pk").annotate(
        number=Count("commits", distinct=True), things=Count("objects_waived", distinct=True)
    )
    return [
        {
            "waiver": row.pk,
            "given_by": row.given_by,
            "given_at": row.given_at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "reason": row.reason,
            "commits": row.number,
            "objects": [one.address for one in row.objects_waived.order_by("pk")[:TOLD]],
            "objects_total": row.things,
        }
        for row in rows[:TOLD]
    ]
