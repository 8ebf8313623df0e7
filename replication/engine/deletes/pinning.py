"""Before a link writes: is its target the one that was pinned, its source the one that it was, and does the state place
agree with the database? What was found out is written down here.
"""

from __future__ import annotations

from typing import Any

from adapters.places.reader import PlaceReader
from core.bringing import Unbrought
from core.errors import LakeMirrorError
from core.replicating.states import Code
from db import clock
from deployment.wiring import region_settings, replication_jobs
from jobs.lease import Lease
from replication.engine.building import pin_of
from replication.engine.deletes.ends import follows, links_at, source_of, target_of
from replication.engine.deletes.manifests import folder_of, is_believed
from replication.models import Link, OpenObject
from replication.queries.lakefs_places import places_of_lakefs
from replication.transitions import duties, freezing, ledger, manifests
from spark_jobs.replicate.pins import Pin, StaleTarget


def note_pin(link: Link, lease: Lease, pin: Pin) -> str:
    """What a round has found: "" unless nothing may be written there any more. Raises Fenced."""
    if pin.stale:
        return _note_stale(link, lease, pin.stale)
    if pin.seen and link.pinned_at is None:
        with lease.transaction():
            if (held := ledger.hold(link.pk)) is not None:
                freezing.refresh(held, clock.now())
    return ""


def _note_stale(link: Link, lease: Lease, why: str) -> str:
    with lease.transaction():
        if (held := ledger.hold(link.pk)) is not None:
            freezing.make_stale(held, why, clock.now())
    return f"stale: {why}"


def pin(link: Link, lease: Lease) -> str:
    """A target that was not the pinned one may be by now, one that has no pin gets it; gives why nothing may be written
    there, "" for as far as is known it may. Raises Fenced."""
    if link.pinned_at is None and (why := _in_another_store(link)):
        return _note_stale(link, lease, why)
    try:
        found = pin_of(link, replication_jobs.place_of(link.region, link.uri))
        _check(link, found)
    except StaleTarget:
        return note_pin(link, lease, found)
    except (Unbrought, LakeMirrorError):  # its round, and whoever looks at its health, tell why
        return f"stale: {link.stale_message}" if link.stale_since else ""
    with lease.transaction():
        if (held := ledger.hold(link.pk)) is not None:
            freezing.refresh(held, clock.now())
    link.stale_since, link.pinned_at = None, clock.now()
    return ""


def _in_another_store(link: Link) -> str:
    """Of a link without a pin: why its target is not the place that was looked at when it was created; "" as far as is
    known it is."""
    now = region_settings.place(link.region, link.uri).store
    if not link.first_store or now in (None, link.first_store):
        return ""
    return f"{link.region} is another store by now, {now}: it was {link.first_store} when this link was created"


def _check(link: Link, found: Pin) -> None:
    """The pin of a link that is gone, in the way of one that never wrote there, is replaced: who created the rule said
    that the place is its own."""
    try:
        found.check()
    except StaleTarget:
        others = Link.objects.filter(identity=found.of_another).exists()
        if link.pinned_at is not None or not found.of_another or others:
            raise
        found.write()


def may_delete(link: Link, lease: Lease, source: PlaceReader) -> bool:
    """Whether this round may delete what was let through. Raises Fenced."""
    if not link.rule.judges or link.frozen_since is not None or link.rule.error:
        return False
    if not OpenObject.objects.filter(link=link.pk).due(clock.now()).deletes().exists():
        return False
    note_created(link.rule_id, lease, source)
    note_repository(link, lease)
    if not Link.objects.filter(pk=link.pk, frozen_since=None).exists():
        return False
    return _source_is_pinned(link, source) and (not link.rule.knows_own or agrees(link))


def _source_is_pinned(link: Link, source: PlaceReader) -> bool:
    """Whether the source still has the pins of the links that lead back there: else it has lost what it lacks."""
    if not follows(link.rule):
        return True
    place = source_of(link.rule)
    back = [one for one in links_at(place) if one.pinned_at is not None and target_of(one) == place]
    return all(pin_of(one, source).is_there() for one in back)


def note_created(rule_id: int, lease: Lease, source: Any) -> None:
    """Whether the source's bucket is the one that it was, where its store tells. Raises Fenced."""
    created = source.created()
    if created:
        with lease.transaction():
            freezing.note_created(rule_id, created, clock.now())


def note_repository(link: Link, lease: Lease) -> None:
    """Whether a repository of lakeFS lies where the link would delete: it may need what the source does not. Raises
    Fenced."""
    place = region_settings.place(link.region, link.uri)
    if any(place.overlaps(taken) for taken, _ in places_of_lakefs()):
        with lease.transaction():
            if (held := ledger.hold(link.pk)) is not None:
                freezing.freeze_link(held, Code.TARGET_REPOSITORY, freezing.REPOSITORY, clock.now())


def agrees(link: Link) -> bool:
    """Whether the state place has what the database says, and nothing newer: else the database is a restored one, or
    what is the link's own is lost, and a look through all has to come first."""
    folder, rows = folder_of(link), list(manifests.files_of(link.pk))
    try:
        names = replication_jobs.state_of(link.region, link.uri).names(folder)
    except LakeMirrorError:
        return False
    writing = {row.writing for row in rows}
    names = [name for name in names if name not in writing]
    if all(is_believed(row, folder, names) for row in rows):
        return True
    duties.wake_scan(link.rule_id)
    return False
