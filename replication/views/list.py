"""The list of rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from core.access.rule_rights import rule_arn
from core.mirroring.states import State
from core.replicating.explain import STATES
from core.text.phrases import Phrase, count, name, say, sentence
from db import clock
from db.labels import with_labels
from mirrors.views.list_query import Chip, query_without
from rbac import services as rbac
from replication.queries.find_rules import rules_holding
from replication.services.rights import LIST, may_create_some
from replication.services.rules import OPERATE
from replication.status.rules import RuleReading, rule_readings, worst_first
from replication.views.rule import SECTION
from web.labels import wanted_labels
from web.pages import whole_or_part

PAGE = 30
NAMED = 3


@dataclass(frozen=True, slots=True)
class ListQuery:
    """What the address asks for. Values that mean nothing are left out, so an old link still opens a list."""

    query: QueryDict
    states: Sequence[State] = field(default_factory=tuple)
    find: str = ""
    labels: Sequence[str] = field(default_factory=tuple)

    @classmethod
    def of(cls, query: QueryDict) -> ListQuery:
        """From the query of a request."""
        known = {state.value for state in STATES}
        states = [State(value) for value in dict.fromkeys(query.getlist("state")) if value in known]
        return cls(query, states, query.get("find", "").strip()[:200], wanted_labels(query.getlist("label")))

    @property
    def narrows(self) -> bool:
        """Whether it leaves out anything."""
        return bool(self.states or self.find or self.labels)

    @property
    def chips(self) -> list[Chip]:
        """Filters that are on."""
        chips = [Chip("State", state.word, query_without(self.query, "state", state.value)) for state in self.states]
        chips += [Chip("Label", label, query_without(self.query, "label", label)) for label in self.labels]
        return chips + ([Chip("Holds", self.find, query_without(self.query, "find"))] if self.find else [])


@never_cache
@require_safe
def rule_list(request: HttpRequest) -> HttpResponse:
    """The rules that the address asks for, the worst first."""
    rbac.require(request.user, LIST)
    now, query = clock.now(), ListQuery.of(request.GET)
    rows = with_labels(rules_holding(query.find), query.labels)
    found = worst_first(rule_readings(list(rows), now))
    chosen = [reading for reading in found if not query.states or reading.told.state in query.states]
    page = Paginator(chosen, PAGE).get_page(request.GET.get("page"))
    shown = list(page)
    context = SECTION | {
        "query": query,
        "readings": shown,
        "page": page,
        "summary": tell(chosen),
        "none": not (chosen or query.narrows),
        "states": STATES,
        "may_create": may_create_some(request.user),
        "operable": [one.rule.pk for one in shown if rbac.allowed(request.user, OPERATE, rule_arn(one.rule.name))],
        "now": now,
        "active": any(reading.moving for reading in shown),
        "changes": ", ".join(f"{one.rule.name}: {one.told.word}" for one in shown if one.needs_somebody),
    }
    return render(request, whole_or_part(request, "replication/list.html", "replication/_list.html"), context)


def tell(readings: Sequence[RuleReading]) -> Phrase:
    """One sentence for all rules: who needs somebody, and whether the rest is well."""
    urgent = [reading for reading in readings if reading.needs_somebody]
    well = sum(reading.told.state is State.UP_TO_DATE for reading in readings)
    if not urgent:
        return sentence(f"{well:,} of {count(len(readings), 'rule')} up to date; nothing needs you")
    named = [say(", " if at else "", name(one.rule.name)) for at, one in enumerate(urgent[:NAMED])]
    more = f", and {len(urgent) - NAMED:,} more" if len(urgent) > NAMED else ""
    need = count(len(urgent), "rule needs", "rules need")
    return sentence(f"{need} attention: ", say(*named), more, f". {well:,} of {len(readings):,} are up to date")
