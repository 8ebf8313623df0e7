"""Where can I read this? An address of an object of a commit, in a region that has it now.

What a commit names is found by its own files, whose ids prove them, so it makes no difference which region gives them.
That the object is there is asked now, of each store that may have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from audit.verbs import Verb
from core.access.mirror_rights import READ
from core.access.policies import namespace_arn, object_arn, repository_arn
from core.errors import Conflict, Invalid, LakeMirrorError, NotFound, Unreachable
from core.locating import USUAL_SECONDS, Located, Tried, check_question, turn_of
from core.mirroring.doubt import Suspect, address_crc
from core.text.phrases import SHORT_ID
from deployment import config
from deployment.wiring import clients, region_settings
from installations import contact
from mirrors.models import Mirror, Repository
from mirrors.services.locate.entries import Holder, Named, named_at
from mirrors.services.locate.places import Place, Seen, looked_at, places_of
from mirrors.services.locate.refs import Resolved, heads_named, resolve
from mirrors.services.locate.suspects import without_it
from mirrors.transitions.seen_missing import doubt_seen
from rbac import services as rbac


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is looked for: an object of a commit, and the repositories that may have it."""

    source: Repository
    mirrors: Sequence[Mirror]
    ref: str
    path: str
    resolved: Resolved
    holders: Sequence[Holder]
    named: Named

    @property
    def commit(self) -> str:
        """Its commit as messages name it."""
        return self.resolved.sha[:SHORT_ID]


def object_locate(
    *,
    actor: Any,
    repository: str,
    source_region: str,
    ref: str,
    path: str,
    prefer: str = "",
    seconds: int = USUAL_SECONDS,
) -> Located:
    """An address, good for `seconds`, by which an object can be read now; it is written down who asked, never the
    address. By order: the preferred region, this deployment's own, one where a check has found it, any other.

    An imported object, whose address is anybody's choice, is given to who may import from there alone.

    Raises Denied; Invalid; NotFound: no mirror is of such a repository, or it has no such ref, or that no such path;
    Conflict: only an archive has it, or there is only another commit's object at that path; Unreachable: nobody who has
    it, or could tell what the ref names, can be asked.
    """
    right = ("fs:ReadObject", object_arn(repository, path))
    rbac.require(actor, right)
    check_question(ref, path, seconds)
    if prefer and prefer not in region_settings.names():
        raise Invalid(f"prefer: there is no region '{prefer[:80]}'", field="prefer")
    if prefer:
        region_settings.require_lakefs(prefer, "prefer")
    wanted = _wanted(actor, repository, source_region, ref, path)
    if wanted.named.full:
        # Whoever may stage an entry names any address, and it would be read by LakeMirror's key.
        rbac.require(actor, ("fs:ImportFromStorage", namespace_arn(wanted.named.address)))
    located = _read_at(wanted, actor, prefer, seconds)
    after = {"ref": ref, "commit": located.commit, "path": path, "region": located.region}
    rbac.audit(actor=actor, right=right, verb=Verb.LOCATE, subject=f"repository/{repository}", after=after)
    return located


def _wanted(actor: Any, repository: str, source_region: str, ref: str, path: str) -> Wanted:
    source = Repository.objects.filter(region=source_region, name=repository).first()
    mirrors = _not_hidden(Mirror.objects.live().filter(source=source).order_by("name"), actor) if source else []
    if source is None or not mirrors:
        raise NotFound(f"nobody mirrors a repository '{repository[:80]}' of {source_region}")
    resolved = resolve(source, mirrors, ref)
    own = Holder(source.region, source.namespace)
    holders = _in_turn([own, *(Holder(mirror.region, mirror.namespace) for mirror in mirrors)])
    named = named_at(holders, resolved.metarange_id, path)
    if named is None:
        since = f", where a mirror was last promoted to: {resolved.away}" if resolved.away else ""
        raise NotFound(f"{ref[:80]} of {repository} has no '{path[:200]}' (in {resolved.sha[:SHORT_ID]}{since})")
    return Wanted(source, mirrors, ref, path, resolved, holders, named)


def _not_hidden(mirrors: Iterable[Mirror], actor: Any) -> list[Mirror]:
    """Of a mirror that a denial hides from somebody nothing is told, whatever it has."""
    return [one for one in mirrors if not rbac.decide(actor, READ, repository_arn(one.name)).is_denied]


def _in_turn(holders: Sequence[Holder]) -> list[Holder]:
    """Those that are known not to answer last, this deployment's own region first."""
    silent, home = {outage.region for outage in contact.outages()}, config.current().region
    return sorted(holders, key=lambda holder: (holder.region in silent, holder.region != home))


def _read_at(wanted: Wanted, actor: Any, prefer: str, seconds: int) -> Located:
    """The first place that has it. Raises what `_why_not` gives."""
    places = places_of(wanted.source, wanted.mirrors, wanted.named, wanted.path, actor)
    covered, home = {place.region for place in places if place.covered}, config.current().region
    places.sort(key=lambda place: turn_of(place.region, prefer=prefer, home=home, covered=covered))
    seen = looked_at(places, wanted.named)
    _heed(wanted, places, seen)
    away = wanted.resolved.away
    tried = [Tried(wanted.source.region, f"its lakeFS can't be asked: {away}")] if away else []
    for place, one in zip(places, seen, strict=True):
        if one.why:
            tried.append(Tried(place.region, one.why))
            continue
        try:
            return _located(wanted, place, seconds, tried)
        except LakeMirrorError as error:
            tried.append(Tried(place.region, str(error)))
    raise _why_not(wanted, places, seen, tried)


def _heed(wanted: Wanted, places: Sequence[Place], seen: Sequence[Seen]) -> None:
    """A mirror that counts an object as arrived, and whose store says otherwise now, has it checked before anything
    moves to what names it, as far as that can be read."""
    suspect = Suspect(wanted.path.encode(), address_crc(wanted.named.address))
    for place, one in zip(places, seen, strict=True):
        if one.wrong and place.mirror:
            without = without_it(place.mirror, wanted.holders, wanted.named, suspect)
            doubt_seen(place.mirror, suspect, without)


def _located(wanted: Wanted, place: Place, seconds: int, tried: Sequence[Tried]) -> Located:
    signed = clients.quick_objects(place.region).presigned(place.uri, seconds)
    return Located(
        url=signed.url,
        expires_at=signed.expires_at,
        region=place.region,
        address=place.uri,
        size=wanted.named.size,
        etag=wanted.named.etag,
        commit=wanted.resolved.sha,
        fresh=wanted.resolved.fresh,
        tried=tuple(tried),
    )


def _why_not(wanted: Wanted, places: Sequence[Place], seen: Sequence[Seen], tried: Sequence[Tried]) -> LakeMirrorError:
    """What is told where no region gives it."""
    for place, one in zip(places, seen, strict=True):
        if one.archived:
            return Conflict(
                f"{place.region} has it in {one.archived}, where nobody can read it",
                hint="Have it restored in that store, then ask again",
            )
    for mirror, sha in _others(wanted):
        return Conflict(
            f"'{wanted.path[:200]}' is another object in {sha[:SHORT_ID]}, which {mirror.region} shows as "
            f"{wanted.ref[:80]}, than in {wanted.commit}, and no region gives that one now",
            hint=f"Ask for ref={sha} if the earlier one will do",
        )
    why = "; ".join(f"{one.region}: {one.why}" for one in tried)
    return Unreachable(f"no region gives '{wanted.path[:200]}' of {wanted.commit} now ({why})")


def _others(wanted: Wanted) -> list[tuple[Mirror, str]]:
    """Mirrors whose ref of that name stands at a commit that has another object at the path."""
    found = []
    for mirror, commit in heads_named(wanted.source, wanted.mirrors, wanted.ref):
        if commit.sha == wanted.resolved.sha:
            continue
        try:
            named = named_at(wanted.holders, commit.metarange_id, wanted.path)
        except Unreachable:
            continue  # nobody can tell what that one has: it is no reason for an answer
        if named is not None and named.address != wanted.named.address:
            found.append((mirror, commit.sha))
    return found
