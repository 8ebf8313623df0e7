"""What a look found: troubles, and how each subject is doing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.urls import reverse

from core.mirroring.states import NOT_KNOWN, State
from core.notifications.lifecycle import Condition, Standing
from exports.models import Export
from mirrors.models import Mirror
from replication.models import Rule

UNSURE = NOT_KNOWN | {State.RETRYING}
"""States of a mirror in which nobody knows whether what was wrong is over."""
UNSURE_EXPORT = frozenset({State.UNKNOWN, State.RETRYING, State.SYNCING})
"""The same of an export: a run that goes on has repaired nothing yet."""


UNSURE_LINK = frozenset({State.UNKNOWN, State.RETRYING})
"""The same of a link of a replication rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A condition with what its alert shows: the subject's name, its region, what to do, the page that helps; the keys
    of mirror, export or rule, by which it is seen by who may see these, and their labels."""

    condition: Condition
    name: str
    link: str
    remedy: str
    region: str = ""
    mirror: int | None = None
    export: int | None = None
    rule: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


def of_mirror(mirror: Mirror, condition: Condition, page: str = "mirror") -> Trouble:
    """What is wrong with a mirror, with what every alert about one shows; `page`: the name of the page that helps."""
    return Trouble(
        condition=condition,
        name=mirror.name,
        link=reverse(page, args=[mirror.name]),
        remedy=condition.kind.remedy,
        region=mirror.region,
        mirror=mirror.pk,
        labels=mirror.labels,
    )


def of_export(export: Export, condition: Condition) -> Trouble:
    """The same of an export."""
    return Trouble(
        condition=condition,
        name=f"{export.repository} · {export.branch}",
        link=reverse("export", args=[export.pk]),
        remedy=condition.kind.remedy,
        region=export.region,
        export=export.pk,
        labels=export.labels,
    )


def of_rule(rule: Rule, condition: Condition, region: str, page: str = "") -> Trouble:
    """The same of a replication rule, or of a link of it; `region`: of what is at fault, `page`: what follows its
    address where another page helps."""
    return Trouble(
        condition=condition,
        name=rule.name,
        link=reverse("rule", args=[rule.name]) + page,
        remedy=condition.kind.remedy,
        region=region,
        rule=rule.pk,
        labels=rule.labels,
    )


@dataclass(slots=True)
class Observation:
    """One look at everything: what is wrong, and how subjects are doing; those that are not in it are gone."""

    troubles: list[Trouble] = field(default_factory=list)
    standings: dict[str, Standing] = field(default_factory=dict)


def with_state(word: str, told: str) -> str:
    """A sentence after the state that it explains, unless it begins with that itself."""
    return told if told.startswith(f"{word}: ") else f"{word}: {told}"


def by_key(troubles: Sequence[Trouble]) -> Mapping[tuple[str, str], Trouble]:
    """By what makes an alert the same: its kind and subject."""
    return {(trouble.condition.kind.value, trouble.condition.subject): trouble for trouble in troubles}
