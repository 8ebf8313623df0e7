"""A region's lakeFS or store that does not answer, or does not let us in: since when, and in words. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from core.errors import Denied, LakeMirrorError, RemoteFailure, Unauthenticated, Unreachable
from core.mirroring.rpo import in_words
from core.text.phrases import Phrase, count, name, say, sentence, sentences

OUTAGE_AFTER = timedelta(seconds=15)
"""What goes on for less is a restart, or one lost answer."""


class Service(StrEnum):
    """What a region consists of."""

    LAKEFS = "lakefs"
    STORE = "store"

    @property
    def name_alone(self) -> str:
        """As the head of a line."""
        return "lakeFS" if self is Service.LAKEFS else "Store"

    @property
    def word(self) -> str:
        """In a sentence."""
        return "the lakeFS" if self is Service.LAKEFS else "the store"


class OutageKind(StrEnum):
    """What is wrong: nothing answers, it answers with errors of its own, or it does not let us in."""

    UNREACHABLE = "unreachable"
    FAILING = "failing"
    REFUSED = "refused"

    @property
    def word(self) -> str:
        """As a person reads it."""
        return {"unreachable": "No answer", "failing": "Errors", "refused": "Refused"}[self.value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """A service of a region that has been failing `since` then; `problem` is what the last call got."""

    region: str
    service: Service
    kind: OutageKind
    since: datetime
    problem: str

    @property
    def brief(self) -> str:
        """In a few words, beside the state of what depends on it."""
        return f"{self.service.name_alone} of {self.region}: {self.kind.word.lower()}"


def outage_kind(service: Service, error: LakeMirrorError) -> OutageKind | None:
    """What an error says about a service; None for one that only a service at work gives, and for what is wrong with
    our own configuration.

    A store's HEAD answers 403 to who may not list, so a store's refusal says nothing.
    """
    if isinstance(error, Unreachable):
        return OutageKind.UNREACHABLE
    if isinstance(error, RemoteFailure):
        return OutageKind.FAILING
    refused = isinstance(error, Unauthenticated | Denied) and service is Service.LAKEFS
    return OutageKind.REFUSED if refused else None


def is_outage(since: datetime | None, now: datetime) -> bool:
    """Whether a failure has gone on for long enough to be told."""
    return since is not None and now - since >= OUTAGE_AFTER


def outage_clause(outage: Outage, now: datetime) -> Phrase:
    """What, where and for how long, without an end: "the lakeFS of eu-west-1 has not answered for 14 min"."""
    told = {
        OutageKind.UNREACHABLE: " has not answered for ",
        OutageKind.FAILING: " has answered with errors for ",
        OutageKind.REFUSED: " has refused our access key for ",
    }
    lasting = in_words((now - outage.since).total_seconds())
    return say(outage.service.word, " of ", name(outage.region), told[outage.kind], lasting)


def outage_phrase(outage: Outage, depending: int, now: datetime) -> Phrase:
    """One sentence: what, where, for how long, and how many mirrors depend on it."""
    mirrors = f": {count(depending, 'mirror depends', 'mirrors depend')} on it" if depending else ""
    return sentence(outage_clause(outage, now), mirrors)


def outage_remedy(outage: Outage) -> str:
    """What to do about it."""
    if outage.kind is OutageKind.REFUSED:
        return f"Give {outage.region} an access key that works, on the page of its installation."
    what = "its lakeFS server" if outage.service is Service.LAKEFS else "its object store"
    return f"Check {what} and the network in between; work continues by itself once it answers."


def tell_outage(outage: Outage, now: datetime) -> Phrase:
    """Both."""
    return sentences(outage_phrase(outage, 0, now), say(outage_remedy(outage)))
