"""The kinds of recurring work: each app registers its own when it is ready, and nobody else knows them by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from jobs.lease import Handler
from jobs.models import Duty


@dataclass(frozen=True, slots=True)
class DutyKind:
    """A kind of recurring work.

    `name`: as it stands in the tables. `interval`: seconds from one round to the next. `needed`: the subjects (keys, or
    a query of keys) that the deployment of some regions works for. `on_repository_event`: the subjects to which a
    change of a region's repository is news. `beyond_us`: why a duty is left to a newer version, or "". `heavy`: it goes
    to the queue of the Spark jobs. `label`: what pages call it.
    """

    name: str
    handler: Handler
    interval: Callable[[], float]
    needed: Callable[[list[str]], Any]
    on_repository_event: Callable[[str, str], Iterable[int]] = lambda region, repository: ()
    beyond_us: Callable[[Duty], str] = lambda duty: ""
    heavy: bool = False
    label: str = ""


_registered: dict[str, DutyKind] = {}


def register(*kinds: DutyKind) -> None:
    """Make kinds of work known; each process does so when the app is ready."""
    _registered.update({kind.name: kind for kind in kinds})


def registered() -> list[DutyKind]:
    """Every kind that this version knows."""
    return list(_registered.values())


def names() -> list[str]:
    """Their names."""
    return list(_registered)


def label_of(name: str) -> str:
    """What people call work of this kind; its name where it has no other one, or is a newer version's."""
    return (_registered[name].label if name in _registered else "") or name.capitalize()


def kind_of(duty: Duty) -> DutyKind | None:
    """The kind of a duty; None for a newer version's."""
    return _registered.get(duty.kind)


def is_heavy(name: str) -> bool:
    """Whether work of this kind goes to the queue of the Spark jobs."""
    return name in _registered and _registered[name].heavy
