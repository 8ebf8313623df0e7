"""How one object stands at each target of a rule: looked at now, at both sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple

from adapters.places.reader import Seen
from core.errors import Invalid, LakeMirrorError, Unreachable
from core.replicating.comparing import Alike, by_heads, is_later
from core.replicating.eligible import LONGEST_KEY, is_copied
from core.replicating.states import OpenStatus
from core.replicating.versions import Version
from core.travelling.describing import Description, description_of, differences, matches
from db import clock
from deployment.wiring import replication_jobs
from jobs.concurrent_calls import ask_all
from replication.engine.building import origins_of
from replication.models import Link, OpenObject, Rule
from spark_jobs.replicate.carrying import described

SOURCE = 0
"""Among the links, whose keys are above it."""
SECONDS = 8.0
"""Who asks waits no longer."""


class Standing(StrEnum):
    """How an object stands at a target, and in all: as stores with replication of their own say it."""

    VERIFIED = "VERIFIED"
    COMPLETED = "COMPLETED"
    PENDING = "PENDING"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    UNKNOWN = "UNKNOWN"
    SOURCE_MISSING = "SOURCE_MISSING"


@dataclass(frozen=True, slots=True)
class AtTarget:
    """An object at one target: what was found there, and what is noted of it. `error`: why nobody could look."""

    link: Link
    standing: Standing
    there: Seen | None = None
    open: OpenObject | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class VersionReading:
    """A version or marker of the source; by link how it stands at the target, and the id that it has there."""

    version: Version
    at: Mapping[int, tuple[Standing, str]]


@dataclass(frozen=True, slots=True)
class ObjectReading:
    """An object of a rule: how the source has it, None if it hasn't, and how it stands at each target."""

    key: str
    source: Seen | None
    targets: Sequence[AtTarget]
    as_of: datetime
    hidden: bool = False
    """Whether the source's latest is a delete marker."""
    versions: Sequence[VersionReading] | None = None
    """Where all are copied: the newest first, as many as were asked for."""

    @property
    def standing(self) -> Standing:
        """Of all: what is wrong anywhere counts more than what is to come, and that more than what is there."""
        if self.source is None and not self.hidden:
            return Standing.SOURCE_MISSING
        found = {target.standing for target in self.targets}
        order = (Standing.FAILED, Standing.UNKNOWN, Standing.PENDING, Standing.SKIPPED)
        return next((one for one in order if one in found), Standing.COMPLETED)


def look_at(rule: Rule, key: str) -> ObjectReading:
    """HEAD at the source and at each target. Raises Invalid for what can be no key of the rule, and what the source's
    store answers."""
    check_key(key)
    links = list(rule.links.kept().select_related("rule").order_by("number"))
    noted = {row.link_id: row for row in OpenObject.objects.filter(link__in=links, key=key.encode())}
    tagged = rule.terms.all or bool(rule.tags)
    calls = {link.pk: partial(_look, link.region, link.uri, key, tagged=tagged) for link in links}
    calls[SOURCE] = partial(_look, rule.region, rule.uri, key, tagged=tagged)
    answers = ask_all(calls, limit=len(calls), seconds=SECONDS)
    source = told_by_source(answers[SOURCE])
    targets = [_at_target(link, source, answers[link.pk], noted.get(link.pk), key) for link in links]
    return ObjectReading(key, source and source.seen, targets, clock.now())


def check_key(key: str) -> None:
    """Raises Invalid for what can be no key of a rule."""
    if not is_copied(key) or len(key.encode()) > LONGEST_KEY:
        hint = "Give the key below the source's place, as it is in its bucket"
        raise Invalid(f"'{key[:80]}' is no key that this rule copies", field="key", hint=hint)


def told_by_source(answer: Any) -> Any:
    """What the source answered. Raises Unreachable where it could not be asked."""
    if not isinstance(answer, LakeMirrorError):
        return answer
    if isinstance(answer, Unreachable):
        raise answer
    raise Unreachable(f"the source can't be asked: {answer.message}", hint=answer.hint) from answer


class _Looked(NamedTuple):
    """What a store told of an object, and how it describes it."""

    seen: Seen
    described: Description


def _look(region: str, uri: str, key: str, *, tagged: bool) -> _Looked | None:
    """`tagged`: with its tags. Raises what the store answers."""
    place = replication_jobs.quick_place_of(region, uri)
    seen = place.head(key)
    if seen is None:
        return None
    if tagged:
        return _Looked(seen, described(replication_jobs.describer_of(place), key, seen.told))
    return _Looked(seen, description_of(seen.told))


def _at_target(
    link: Link, source: _Looked | None, looked: _Looked | LakeMirrorError | None, noted: OpenObject | None, key: str
) -> AtTarget:
    if isinstance(looked, LakeMirrorError):
        return AtTarget(link, Standing.UNKNOWN, None, noted, str(looked))
    there = looked and looked.seen
    if source is None:
        return AtTarget(link, Standing.SOURCE_MISSING, there, noted)
    if looked is not None and _is_equal(link, source, looked, key):
        return AtTarget(link, Standing.VERIFIED, there)
    status, terms = noted.status if noted else "", link.rule.terms
    wanted = link.rule.wants(source.seen.modified) and matches(terms.tags, source.described.tags or {})
    if not wanted or status == OpenStatus.SKIPPED.value:
        return AtTarget(link, Standing.SKIPPED, there, noted)
    return AtTarget(link, Standing.FAILED if status == OpenStatus.FAILED.value else Standing.PENDING, there, noted)


def _is_equal(link: Link, source: _Looked, there: _Looked, key: str) -> bool:
    """Whether it is there as the source has it, with all that describing."""
    uri, proof_key = f"{link.uri}/{key}", replication_jobs.proof_key()
    if link.rule.both_ways:
        return origins_of(link).is_equal(f"{link.rule.uri}/{key}", uri, source.seen, there.seen, proof_key)
    later = is_later(there.seen.modified, source.seen.modified)
    alike = by_heads(source.seen.info, there.seen.info, uri, proof_key, later=later)
    if alike is not Alike.EQUAL:
        return False
    return not (link.rule.terms.all and differences(source.described, there.described, clock.now()))
