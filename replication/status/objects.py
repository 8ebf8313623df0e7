"""How one object stands at each target of a rule: looked at now, at both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial

from adapters.places.reader import Seen
from core.errors import Invalid, LakeMirrorError, Unreachable
from core.replicating.comparing import Alike, by_heads, is_later
from core.replicating.eligible import LONGEST_KEY, is_copied
from core.replicating.states import OpenStatus
from db import clock
from deployment.wiring import replication_jobs
from jobs.concurrent_calls import ask_all
from replication.models import Link, OpenObject, Rule

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
class ObjectReading:
    """An object of a rule: how the source has it, None if it hasn't, and how it stands at each target."""

    key: str
    source: Seen | None
    targets: Sequence[AtTarget]
    as_of: datetime

    @property
    def standing(self) -> Standing:
        """Of all: what is wrong anywhere counts more than what is to come, and that more than what is there."""
        if self.source is None:
            return Standing.SOURCE_MISSING
        found = {target.standing for target in self.targets}
        order = (Standing.FAILED, Standing.UNKNOWN, Standing.PENDING, Standing.SKIPPED)
        return next((one for one in order if one in found), Standing.COMPLETED)


def look_at(rule: Rule, key: str) -> ObjectReading:
    """HEAD at the source and at each target. Raises Invalid for what can be no key of the rule, and what the source's
    store answers."""
    if not is_copied(key) or len(key.encode()) > LONGEST_KEY:
        hint = "Give the key below the source's place, as it is in its bucket"
        raise Invalid(f"'{key[:80]}' is no key that this rule copies", field="key", hint=hint)
    links = list(rule.links.select_related("rule").order_by("number"))
    noted = {row.link_id: row for row in OpenObject.objects.filter(link__in=links, key=key.encode())}
    calls = {link.pk: partial(_head, link.region, link.uri, key) for link in links}
    answers = ask_all(
        {SOURCE: partial(_head, rule.region, rule.uri, key), **calls}, limit=len(links) + 1, seconds=SECONDS
    )
    seen = answers[SOURCE]
    if isinstance(seen, LakeMirrorError):
        if isinstance(seen, Unreachable):
            raise seen
        raise Unreachable(f"the source can't be asked: {seen.message}", hint=seen.hint) from seen
    targets = [_at_target(link, seen, answers[link.pk], noted.get(link.pk), f"{link.uri}/{key}") for link in links]
    return ObjectReading(key, seen, targets, clock.now())


def _head(region: str, uri: str, key: str) -> Seen | None:
    return replication_jobs.quick_place_of(region, uri).head(key)


def _at_target(
    link: Link, source: Seen | None, there: Seen | LakeMirrorError | None, noted: OpenObject | None, uri: str
) -> AtTarget:
    if isinstance(there, LakeMirrorError):
        return AtTarget(link, Standing.UNKNOWN, None, noted, str(there))
    if source is None:
        return AtTarget(link, Standing.SOURCE_MISSING, there, noted)
    later = there is not None and is_later(there.modified, source.modified)
    if by_heads(source.info, there and there.info, uri, replication_jobs.proof_key(), later=later) is Alike.EQUAL:
        return AtTarget(link, Standing.VERIFIED, there)
    status = noted.status if noted else ""
    if not link.rule.wants(source.modified) or status == OpenStatus.SKIPPED.value:
        return AtTarget(link, Standing.SKIPPED, there, noted)
    return AtTarget(link, Standing.FAILED if status == OpenStatus.FAILED.value else Standing.PENDING, there, noted)
