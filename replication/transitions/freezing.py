"""Links on which nothing is deleted, for their source is not as it was; and links whose target is not the one that was
pinned, where nothing is written at all. Both until somebody confirms.
"""

from __future__ import annotations

from datetime import datetime

from core.replicating.states import Code
from replication.models import Link
from replication.transitions import deletions, ledger

EMPTY = "the source is empty, and had objects when it was compared before"
HIDDEN = "the source shows no object any more, and showed some when it was compared before"
GONE = "the source's bucket does not exist"
REPOSITORY = "a repository of lakeFS, or a mirror, lies at the target, within it or around it"


def freeze(rule_id: int, code: Code, message: str, now: datetime) -> None:
    """Nothing is deleted by the links of a rule before somebody confirms its source. Inside of a transaction."""
    ledger.hold_all(rule_id)
    for link in Link.objects.filter(rule=rule_id, frozen_since=None).order_by("pk"):
        freeze_link(link, code, message, now)


def freeze_link(link: Link, code: Code, message: str, now: datetime) -> None:
    """The same of one link. Inside of a transaction that holds it."""
    deletions.hold_back(link, now)
    told = {"frozen_since": now, "frozen_code": code.value, "frozen_message": message[:1000]}
    Link.objects.filter(pk=link.pk, frozen_since=None).update(**told)


def thaw(link: Link) -> None:
    """Somebody has confirmed the source as it is now. Inside of a transaction that holds the link."""
    Link.objects.filter(pk=link.pk).update(frozen_since=None, frozen_code="", frozen_message="", source_created="")


def note_created(rule_id: int, created: str, now: datetime) -> None:
    """When the source's bucket was created, as its store tells now: another time than before, and it is another bucket.
    Inside of a transaction."""
    ledger.hold_all(rule_id)
    links = Link.objects.filter(rule=rule_id)
    links.filter(source_created="", frozen_since=None).update(source_created=created)
    known = links.filter(frozen_since=None).exclude(source_created="")  # of a frozen one it is known already
    other = known.exclude(source_created=created).first()
    if other is not None:
        text = f"the source's bucket was created at {created}, the one before at {other.source_created}"
        freeze(rule_id, Code.SOURCE_RECREATED, text, now)


def make_stale(link: Link, message: str, now: datetime) -> None:
    """Its target is not the one that was pinned. Inside of a transaction that holds the link."""
    deletions.hold_back(link, now)
    told = {"stale_since": now, "stale_message": message[:1000]}
    Link.objects.filter(pk=link.pk, stale_since=None).update(**told)


def refresh(link: Link, now: datetime) -> None:
    """Its target is the one that was pinned, or that somebody has confirmed. Inside of a transaction that holds it."""
    Link.objects.filter(pk=link.pk).update(pinned_at=now, stale_since=None, stale_message="")
