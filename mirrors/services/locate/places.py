"""The places that may have an object: its source's, and those of the mirrors; and a look at each of them now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from core.access.policies import object_arn
from core.errors import Archived, LakeMirrorError
from core.mirroring.object_check import OF_ENTRY, Depth, Imported, Reason, is_another, is_in_s3, judge_object
from core.types import ObjectInfo
from deployment.wiring import clients
from jobs.concurrent_calls import ask_all
from mirrors.models import Coverage, Mirror, Repository
from mirrors.queries.proof_facts import is_at_its_store
from mirrors.services.locate.entries import Named
from rbac import services as rbac

LOOKS, SECONDS = 8, 10.0
"""So many places are asked at once, and so long altogether."""


@dataclass(frozen=True, slots=True)
class Place:
    """A region's store that may have the object. `covered`: a check has found it there as it should be; the source's
    own object is what the commit means, whatever its ETag."""

    region: str
    uri: str
    covered: bool
    unasked: str = ""
    """Why it isn't asked, "" if it is."""
    mirror: int = 0
    """The mirror's key; 0: the source's own place."""
    depth: Depth = Depth.ETAG
    """As deep as the mirror looks."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look found: nothing in the way, or why not; `archived` is the storage class where that is the reason.
    `answered`: the store has said what it has, `info`. `wrong`: a check of the mirror would find the same now, whatever
    it read."""

    why: str = ""
    archived: str = ""
    answered: bool = False
    info: ObjectInfo | None = None
    wrong: bool = False


def places_of(source: Repository, mirrors: Sequence[Mirror], named: Named, path: str, user: Any) -> list[Place]:
    """The source's, and those of its mirrors. Who is denied the object of a mirror's repository gets none from
    there."""
    proven = _proving(mirrors, named.range_id)
    places = [Place(source.region, named.uri(source.namespace), True, _not_in_s3(named))]
    for mirror in mirrors:
        denied = rbac.decide(user, "fs:ReadObject", object_arn(mirror.name, path)).is_denied
        elsewhere = named.full and mirror.imported == Imported.BLOCK
        unasked = "a policy denies you the object there" if denied else ""
        unasked = unasked or ("imported: the object lies outside of the mirror" if elsewhere else _not_in_s3(named))
        uri, depth = named.uri(mirror.namespace), Depth(mirror.depth)
        places.append(Place(mirror.region, uri, mirror.pk in proven, unasked, mirror.pk, depth))
    return places


def _not_in_s3(named: Named) -> str:
    return "the object lies in no S3 store" if named.full and not is_in_s3(named.address) else ""


def _proving(mirrors: Sequence[Mirror], range_id: str) -> set[int]:
    """Those at which the range was found complete by a check that looks at ETags, in the store of now."""
    rows = Coverage.objects.filter(mirror__in=mirrors, range_id=range_id, state=Coverage.State.COMPLETE)
    proving = set(rows.proving(Depth.ETAG).values_list("mirror_id", flat=True))
    return {mirror.pk for mirror in mirrors if mirror.pk in proving and is_at_its_store(mirror)}


def looked_at(places: Sequence[Place], named: Named) -> list[Seen]:
    """What each of them has now, side by side."""
    calls: dict[int, Callable[[], Seen]] = {
        number: partial(_look, place, named) for number, place in enumerate(places) if not place.unasked
    }
    found = ask_all(calls, limit=LOOKS, seconds=SECONDS) if calls else {}
    seen = [_told(place, found.get(number)) for number, place in enumerate(places)]
    original = next((one for place, one in zip(places, seen, strict=True) if not place.mirror), Seen())
    return [replace(one, wrong=_is_wrong(place, one, original, named)) for place, one in zip(places, seen, strict=True)]


def _is_wrong(place: Place, seen: Seen, original: Seen, named: Named) -> bool:
    """What passes by the mirror's own depth, or as the source has it, is not: else each look would take down for
    nothing what a check has found."""
    if not (place.mirror and seen.answered):
        return False
    verdict = judge_object(seen.info, size=named.size, etag=named.etag, depth=place.depth)
    if verdict is None or seen.info is None or verdict[0] not in OF_ENTRY:
        return verdict is not None
    return original.answered and is_another(seen.info, original.info)


def _told(place: Place, found: Seen | LakeMirrorError | None) -> Seen:
    if found is None:
        return Seen(place.unasked)
    return Seen(str(found)) if isinstance(found, LakeMirrorError) else found


def _look(place: Place, named: Named) -> Seen:
    """A HEAD; where a check has found it in other parts, or encrypted, its size has to do."""
    try:
        info: ObjectInfo | None = clients.quick_objects(place.region).head(place.uri)
    except Archived as error:
        return Seen(str(error), "an archive")
    depth = Depth.SIZE if place.covered else Depth.ETAG
    verdict = judge_object(info, size=named.size, etag=named.etag, depth=depth)
    if verdict is None:
        return Seen(answered=True, info=info)
    reason, detail = verdict
    if reason is Reason.MISSING:
        return Seen("it is not there", answered=True)
    archived = info.storage_class if info and reason is Reason.ARCHIVED else ""
    return Seen(detail.replace("at the destination", "there"), archived, answered=True, info=info)
