"""Which exports a list shows, from where on: all of it stands in the address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.http import QueryDict

from core.exporting.explain import STATES
from core.mirroring.states import State
from core.text.phrases import Phrase, count, name, say, sentence
from exports.status.export import ExportSummary
from mirrors.views.list_query import Chip, query_without
from web.labels import wanted_labels

NAMED = 3
_VERBS = {State.FAILED: "has ", State.DAMAGED: "has ", State.STOPPED: "– "}


@dataclass(frozen=True, slots=True)
class ListQuery:
    """What the address asks for. Values that mean nothing are left out, so an old link still opens a list."""

    query: QueryDict
    states: Sequence[State] = field(default_factory=tuple)
    find: str = ""
    page: str = ""
    labels: Sequence[str] = field(default_factory=tuple)

    @classmethod
    def of(cls, query: QueryDict) -> ListQuery:
        """From the query of a request."""
        known = {state.value for state in STATES}
        states = [State(value) for value in dict.fromkeys(query.getlist("state")) if value in known]
        find, labels = query.get("find", "").strip()[:200], wanted_labels(query.getlist("label"))
        return cls(query, states, find, query.get("page", ""), labels)

    def chosen(self, readings: Sequence[ExportSummary]) -> list[ExportSummary]:
        """Those in the states that are asked for, the worst first."""
        return [reading for reading in readings if not self.states or reading.told.state in self.states]

    @property
    def chips(self) -> list[Chip]:
        """Filters that are on."""
        chips = [Chip("State", state.word, query_without(self.query, "state", state.value)) for state in self.states]
        chips += [Chip("Label", label, query_without(self.query, "label", label)) for label in self.labels]
        return chips + ([Chip("Holds", self.find, query_without(self.query, "find"))] if self.find else [])


def needing(readings: Sequence[ExportSummary]) -> list[ExportSummary]:
    """Those that need somebody, in the order given."""
    return [reading for reading in readings if reading.needs_somebody]


def tell(readings: Sequence[ExportSummary]) -> Phrase:
    """One sentence for all exports: who needs somebody, and whether the rest is well."""
    urgent = needing(readings)
    well = sum(reading.told.state is State.UP_TO_DATE for reading in readings)
    if not urgent:
        unknown = sum(reading.told.state is State.UNKNOWN for reading in readings)
        retrying = sum(reading.told.state is State.RETRYING for reading in readings)
        words = [f"{count(unknown, 'is', 'are')} unknown"] if unknown else []
        words += [f"{count(retrying, 'is', 'are')} being retried"] if retrying else []
        rest = ", ".join(words) or "nothing needs you"
        return sentence(f"{well:,} of {count(len(readings), 'export')} up to date; {rest}")
    listed = say(*(_named(reading, first=number == 0) for number, reading in enumerate(urgent[:NAMED])))
    more = f", and {len(urgent) - NAMED:,} more" if len(urgent) > NAMED else ""
    need = count(len(urgent), "export needs", "exports need")
    return sentence(f"{need} attention: ", listed, more, f". {well:,} of {len(readings):,} are up to date")


def _named(reading: ExportSummary, *, first: bool) -> Phrase:
    export = reading.export
    who = name(f"{export.repository} · {export.which}")
    return say(
        "" if first else ", ",
        who,
        f" {_VERBS.get(reading.told.state, 'is ')}{reading.told.word.lower()}",
    )
