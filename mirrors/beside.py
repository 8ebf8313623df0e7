"""What exports bring to the pages that they share with mirrors: overview, jobs, search, metrics, a mirror's own page.

Imports point from exports to mirrors, so the app that has them registers itself here. Whoever asks is only told of
exports whose branches the user may read; but for the metrics, which are of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from core.mirroring.states import State
from core.text.phrases import Phrase
from web.prometheus import Gauge


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """An export that needs somebody; `verb` at `verb_url` is what helps, "" where the user may not do it."""

    key: int
    name: str
    url: str
    repository: str
    branch: str
    region: str
    state: State
    word: str
    told: Phrase
    verb: str = ""
    verb_url: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """How all exports are doing: how many there are, how many need somebody, and some of these."""

    total: int
    needing: int
    some: Sequence[Need]
    told: Phrase

    @property
    def more(self) -> int:
        """How many of those that need somebody are not named."""
        return self.needing - len(self.some)


@dataclass(frozen=True, slots=True)
class SourceRepository:
    """A repository in a region, of which there need be no mirror."""

    name: str
    region: str

    def __str__(self) -> str:
        return f"{self.name} ({self.region})"


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a duty is about, and the right to have it done."""

    name: str
    url: str
    place: SourceRepository
    branch: str
    action: str
    arn: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GoingOn:
    """A run that goes on; `job` is the duty that carries it, "" while it has none."""

    key: int
    name: str
    url: str
    phase: str
    through: int
    whole: int
    copied_bytes: int
    bytes_rate: float | None
    eta: datetime | None
    since: datetime
    job: str
    pause_url: str = ""


@dataclass(frozen=True, slots=True)
class ExportHit:
    """An export whose repository, branch or path holds a text."""

    name: str
    url: str
    repository: str
    branch: str
    region: str
    path: str


@dataclass(frozen=True, slots=True)
class Link:
    """An export, to be led to."""

    branch: str
    path: str
    url: str
    state: State
    word: str


class Exports(Protocol):
    """What is asked of exports here."""

    def summary(self, user: Any, now: datetime, most: int) -> Summary: ...
    def subjects(self, user: Any, find: str = "") -> list[int]: ...  # of their duties
    def about(self, subjects: Sequence[int]) -> Mapping[int, About]: ...
    def going_on(self, user: Any, now: datetime, most: int) -> list[GoingOn]: ...
    def found(self, user: Any, text: str, most: int) -> list[ExportHit]: ...  # one more than `most` if there are more
    def of_source(self, user: Any, region: str, repository: str, now: datetime, most: int) -> list[Link]: ...
    def places(self) -> Iterator[tuple[str, str]]: ...  # all that they write to, each with whose it is
    def gauges(self, now: datetime) -> Iterator[Gauge]: ...


_registered: list[Callable[[], Exports]] = []


def register(made: Callable[[], Exports]) -> None:
    """How to come by the app that has them; each process does so when the app is ready, before much can be imported."""
    _registered[:] = [made]


def exports() -> Exports:
    """The app that has them."""
    return _registered[0]()
