"""How all versions of one key stand at each target of a rule: the chains of all sides are listed now."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from adapters.places.reader import Seen, time_of
from adapters.places.versions import OF_HEADER, VersionedPlace
from core.errors import LakeMirrorError, NotFound
from core.replicating.states import OpenStatus
from core.replicating.versions import Chain, Plan, Version, pairs
from core.travelling.copies import copies
from core.travelling.describing import Description, differences, matches
from core.types import ObjectInfo
from db import clock
from deployment.wiring import replication_jobs
from jobs.concurrent_calls import ask_all
from replication.engine.building import terms_of
from replication.models import Link, OpenObject, Rule
from replication.status.objects import (
    SECONDS,
    SOURCE,
    AtTarget,
    ObjectReading,
    Standing,
    VersionReading,
    check_key,
    told_by_source,
)
from spark_jobs.replicate.carrying import described
from spark_jobs.replicate.chains import Tagged, Terms, compared, unwanted

AT_ONCE = 16
"""So many versions are asked about at a time."""
MOST = 100
"""So many versions are told, the newest."""
_Found = dict[str, tuple[Standing, str]]
"""By a version's id: how it stands at a target, and its id there."""


def look_at_versions(rule: Rule, key: str, version: str = "") -> ObjectReading:
    """The chains of a key at the source and at each target; `version`: only this one is told. Raises Invalid for what
    can be no key of the rule, NotFound for a version that the source has not, and what its store answers."""
    check_key(key)
    links = list(rule.links.kept().select_related("rule").order_by("number"))
    noted = {row.link_id: row for row in OpenObject.objects.copies().filter(link__in=links, key=key.encode())}
    calls = {link.pk: partial(_chain, link.region, link.uri, key) for link in links}
    calls[SOURCE] = partial(_chain, rule.region, rule.uri, key)
    answers = ask_all(calls, limit=len(calls), seconds=SECONDS)
    source: Chain = told_by_source(answers[SOURCE])
    if version and not any(one.id == version for one in source):
        raise NotFound(f"the source has no version '{version[:80]}' of '{key[:80]}'")
    targets, found = list[AtTarget](), dict[int, _Found]()
    shown = [one for one in reversed(source) if version in ("", one.id)][:MOST]
    beside = Beside(rule, key, shown)
    for link in links:
        told, found[link.pk] = _at_target(link, key, source, answers[link.pk], noted.get(link.pk), beside)
        targets.append(told)
    readings = [
        VersionReading(one, {pk: known.get(one.id, (Standing.SKIPPED, "")) for pk, known in found.items()})
        for one in shown
    ]
    hidden = bool(source) and source[-1].marker
    return ObjectReading(key, _seen(key, source), targets, clock.now(), hidden, readings)


def _chain(region: str, uri: str, key: str) -> Chain:
    return replication_jobs.quick_versioned_place_of(region, uri).chain(key)


def _seen(key: str, chain: Chain) -> Seen | None:
    """The latest, as readers see it."""
    if not chain or chain[-1].marker:
        return None
    latest = chain[-1]
    return Seen(ObjectInfo(key, latest.size, latest.etag), time_of(latest.modified))


def _at_target(
    link: Link, key: str, source: Chain, there: Chain | LakeMirrorError, row: OpenObject | None, beside: Beside
) -> tuple[AtTarget, _Found]:
    if isinstance(there, LakeMirrorError):
        unknown = {one.id: (Standing.UNKNOWN, "") for one in source}
        return AtTarget(link, Standing.UNKNOWN, None, row, str(there)), unknown
    if not source:
        return AtTarget(link, Standing.SOURCE_MISSING, _seen(key, there), row), {}
    terms, but = terms_of(link)._replace(hides=True, shows=True), unwanted(link.rule, source)
    place = replication_jobs.quick_versioned_place_of(link.region, link.uri)
    try:
        made, there, untagged = compared(place, key, source, there, terms, but, beside.tagged)
        but |= untagged if terms.markers else {*untagged, *(one.id for one in source if one.marker)}
        found = _found(key, source, there, terms, but, row)
        otherwise = beside.otherwise(link, source, there, terms, but)
    except LakeMirrorError as error:
        unknown = {one.id: (Standing.UNKNOWN, "") for one in source}
        return AtTarget(link, Standing.UNKNOWN, _seen(key, there), row, str(error)), unknown
    found |= {own: (_standing(own, row), found[own][1]) for own in otherwise if own in found}
    whole = _whole(made, source, but, row)
    if otherwise and whole is Standing.VERIFIED:
        whole = _standing(row.version if row is not None else "", row)
    return AtTarget(link, whole, _seen(key, there), row), found


def _whole(made: Plan, source: Chain, but: Collection[str], row: OpenObject | None) -> Standing:
    if not made.lacks:
        return Standing.VERIFIED if len(but) < len(source) else Standing.SKIPPED
    if made.unhidable or (row and row.status == OpenStatus.SKIPPED.value):
        return Standing.SKIPPED
    return Standing.FAILED if made.conflicts or (row and row.status == OpenStatus.FAILED.value) else Standing.PENDING


def _found(key: str, source: Chain, there: Chain, terms: Terms, but: Collection[str], row: OpenObject | None) -> _Found:
    """Of each version that is copied; the others are skipped."""
    paired = pairs(key, source, there, exact=terms.exact, but=but, markers=terms.markers)
    return {own: _one(own, other, row) for own, other in paired.items()}


def _one(own: str, other: Version | None, row: OpenObject | None) -> tuple[Standing, str]:
    return (Standing.VERIFIED, other.id) if other is not None else (_standing(own, row), "")


def _standing(own: str, row: OpenObject | None) -> Standing:
    """Of a version that is not there as the source has it."""
    if row is None or row.version != own:
        return Standing.PENDING
    words = {OpenStatus.FAILED.value: Standing.FAILED, OpenStatus.SKIPPED.value: Standing.SKIPPED}
    return words.get(row.status, Standing.PENDING)


# --- beside bytes -----------------------------------------------------------------------------------------------------


class Beside:
    """What goes beside the bytes of a key's versions: asked now, of those that are `shown`."""

    def __init__(self, rule: Rule, key: str, shown: Chain) -> None:
        self.rule, self.key = rule, key
        self.shown = {one.id for one in shown}

    @property
    def tagged(self) -> Tagged | None:
        """Whether a version has the tags that the rule asks for; None: it asks for none. Raises what the source
        answers."""
        if not self.rule.tags:
            return None
        source = replication_jobs.quick_versioned_place_of(self.rule.region, self.rule.uri)
        describer = replication_jobs.describer_of(source)
        return lambda key, version: matches(self.rule.tags, describer.tags(key, version.id))

    def otherwise(self, link: Link, source: Chain, there: Chain, terms: Terms, but: Collection[str]) -> list[str]:
        """The ids of shown versions that a target describes otherwise. Raises what either side answers."""
        if not self.rule.terms.all or self.rule.both_ways:
            return []
        versions = [one.id for one in there if not one.marker][-2 * MOST :]
        found = self._described(link.region, link.uri, versions)
        told = {id_: one.headers.get(OF_HEADER, "") for id_, one in found.items() if one is not None}
        there = [one._replace(of=one.of or told.get(one.id, "")) for one in there]
        chosen = {"but": but, "markers": terms.markers, "purges": self.rule.purges}
        made = copies(self.key, source, there, exact=terms.exact, **chosen)
        pairs = [pair for pair in made if pair.own.id in self.shown and pair.there.id in found]
        own = self._described(self.rule.region, self.rule.uri, [pair.own.id for pair in pairs])
        looked = [(pair.own.id, own[pair.own.id], found[pair.there.id]) for pair in pairs]
        return [id_ for id_, one, other in looked if one is not None and self._differs(one, other)]

    def _differs(self, own: Description, found: Description | None) -> bool:
        if not matches(self.rule.tags, own.tags or {}):
            return False
        return found is None or bool(differences(own, found, clock.now()) - {"headers"})

    def _described(self, region: str, uri: str, versions: Sequence[str]) -> dict[str, Description | None]:
        """By the ids of versions, each once; None for what is not there."""
        place = replication_jobs.quick_versioned_place_of(region, uri)
        calls = {id_: partial(self._one, place, id_) for id_ in dict.fromkeys(versions)}
        answers = ask_all(calls, limit=AT_ONCE, seconds=SECONDS) if calls else {}
        if (error := next((one for one in answers.values() if isinstance(one, LakeMirrorError)), None)) is not None:
            raise error
        return answers

    def _one(self, place: VersionedPlace, version: str) -> Description | None:
        seen = place.head(self.key, version)
        return None if seen is None else described(replication_jobs.describer_of(place), self.key, seen.told, version)
