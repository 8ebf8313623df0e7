"""How all versions of one key stand at each target of a rule: the chains of all sides are listed now."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from adapters.places.reader import Seen, time_of
from core.errors import LakeMirrorError, NotFound
from core.replicating.states import OpenStatus
from core.replicating.versions import Chain, Plan, Version, pairs
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
from spark_jobs.replicate.chains import Terms, compared, unwanted

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
    for link in links:
        told, found[link.pk] = _at_target(link, key, source, answers[link.pk], noted.get(link.pk))
        targets.append(told)
    shown = [one for one in reversed(source) if version in ("", one.id)][:MOST]
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
    link: Link, key: str, source: Chain, there: Chain | LakeMirrorError, row: OpenObject | None
) -> tuple[AtTarget, _Found]:
    if isinstance(there, LakeMirrorError):
        unknown = {one.id: (Standing.UNKNOWN, "") for one in source}
        return AtTarget(link, Standing.UNKNOWN, None, row, str(there)), unknown
    if not source:
        return AtTarget(link, Standing.SOURCE_MISSING, _seen(key, there), row), {}
    terms, but = terms_of(link)._replace(hides=True, shows=True), unwanted(link.rule, source)
    place = replication_jobs.quick_versioned_place_of(link.region, link.uri)
    try:
        made, there = compared(place, key, source, there, terms, but)
    except LakeMirrorError as error:
        unknown = {one.id: (Standing.UNKNOWN, "") for one in source}
        return AtTarget(link, Standing.UNKNOWN, _seen(key, there), row, str(error)), unknown
    found = _found(key, source, there, terms, but, row)
    return AtTarget(link, _whole(made, source, but, row), _seen(key, there), row), found


def _whole(made: Plan, source: Chain, but: Collection[str], row: OpenObject | None) -> Standing:
    if not made.lacks:
        return Standing.VERIFIED if len(but) < len(source) else Standing.SKIPPED
    if made.unhidable or (row and row.status == OpenStatus.SKIPPED.value):
        return Standing.SKIPPED
    return Standing.FAILED if made.conflicts or (row and row.status == OpenStatus.FAILED.value) else Standing.PENDING


def _found(key: str, source: Chain, there: Chain, terms: Terms, but: Collection[str], row: OpenObject | None) -> _Found:
    """Of each version that is copied; the others are skipped."""
    paired = pairs(key, source, there, exact=terms.exact, but=but)
    return {own: _one(own, other, row) for own, other in paired.items()}


def _one(own: str, other: Version | None, row: OpenObject | None) -> tuple[Standing, str]:
    if other is not None:
        return Standing.VERIFIED, other.id
    if row is None or row.version != own:
        return Standing.PENDING, ""
    words = {OpenStatus.FAILED.value: Standing.FAILED, OpenStatus.SKIPPED.value: Standing.SKIPPED}
    return words.get(row.status, Standing.PENDING), ""
