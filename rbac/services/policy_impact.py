"""What a draft of a policy would allow or break, and for whom, before it is saved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice

from django.db.models import Q

from core.access.policies import Policy as Reading
from core.access.policy_analysis import Change, PermissionStep, Person, Place, changes, places_named
from rbac import permission_catalog, services
from rbac.models import Policy, User
from rbac.services.effective_permissions import policies_of_all

MOST_PEOPLE = 500
MOST_PLACES = 200
MOST_CHANGES = 300


@dataclass(frozen=True, slots=True)
class AreaChange:
    """A change, and the part of the site that the step belongs to."""

    area: str
    change: Change


@dataclass(frozen=True, slots=True)
class Grouped:
    """A step that changes alike at several places, for the same people."""

    change: Change
    places: list[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Impact:
    """What a draft changes: those steps first that somebody could take no more.

    `people` have the policy; `left_out` are those who were too many to be judged. `alone` is what it changes for
    somebody who has no other policy: all there is to say while nobody has it. `more`: there are more changes.
    """

    policy: str
    draft: Reading | None
    people: int
    left_out: int
    changes: list[AreaChange]
    alone: list[AreaChange]
    more: bool

    @property
    def breaks(self) -> int:
        """How many steps somebody could take no more, somewhere."""
        return len({area_change.change.step.key for area_change in self.changes if area_change.change.lost})

    @property
    def allows(self) -> int:
        """How many steps somebody could take only then, somewhere."""
        return len({area_change.change.step.key for area_change in self.changes if area_change.change.gained})

    @property
    def grouped(self) -> list[Grouped]:
        """The changes, those together that are the same elsewhere; of a draft that nobody has, what it does alone."""
        return _grouped(self.changes or ([] if self.people else self.alone))


def impact(name: str, draft: Reading | None, *, also: Iterable[User] = ()) -> Impact:
    """What changes if the policy of that name became the draft, or went away (None).

    `also` are users who would get it besides those who have it now.
    """
    saved = Policy.objects.filter(name=name).first()
    old = services.reading_of(saved) if saved else None
    holders = _holders(saved) if saved else []
    getting = [user for user in also if user not in holders]
    shown = [*holders, *getting][:MOST_PEOPLE]
    people = [_person(user, read, old, draft, user in holders) for user, read in policies_of_all(shown).items()]
    nobody = Person("", _only(old), _only(draft))
    area_changes = _all_changes(people, old, draft)
    alone = _all_changes([nobody], old, draft)
    first = list(islice(area_changes, MOST_CHANGES + 1))
    return Impact(
        name,
        draft,
        len(people),
        len(holders) + len(getting) - len(people),
        sorted(first[:MOST_CHANGES], key=lambda area_change: not area_change.change.lost),
        list(islice(alone, MOST_CHANGES)),
        len(first) > MOST_CHANGES,
    )


def _grouped(area_changes: Iterable[AreaChange]) -> list[Grouped]:
    groups: dict[tuple[object, ...], Grouped] = {}
    for area_change in area_changes:
        change = area_change.change
        alike = change.step.key, change.lost, change.gained, change.after.deciding
        groups.setdefault(alike, Grouped(change, [])).places.append(change.arns)
    return list(groups.values())


def _holders(policy: Policy) -> list[User]:
    """Users who may sign in and whom the policy reaches, by name."""
    reached = Q(attachments__policy=policy) | Q(memberships__group__attachments__policy=policy)
    return list(User.objects.filter(reached, is_active=True).distinct().order_by("username"))


def _only(policy: Reading | None) -> tuple[Reading, ...]:
    return (policy,) if policy else ()


def _person(user: User, read: Iterable[Reading], old: Reading | None, draft: Reading | None, has_it: bool) -> Person:
    rest = tuple(reading for reading in read if old is None or reading.name != old.name)
    return Person(user.username, rest + (_only(old) if has_it else ()), rest + _only(draft))


def _all_changes(people: list[Person], old: Reading | None, draft: Reading | None) -> Iterator[AreaChange]:
    versions = (*_only(old), *_only(draft))
    for area in permission_catalog.areas():
        read_places = _once(area.places)
        for step in area.steps:
            yield from (
                AreaChange(area.title, change) for change in changes(step, _places(step, read_places, versions), people)
            )


def _once(places: Callable[[int], Iterable[Place]]) -> Callable[[], list[Place]]:
    """The places that there are, read when somebody asks and then kept."""
    return cache(lambda: list(places(MOST_PLACES)))


def _places(step: PermissionStep, read_places: Callable[[], list[Place]], versions: Iterable[Reading]) -> list[Place]:
    """Where a step is judged: what the two versions name, and what there is; each once."""
    candidates = [*places_named(step, versions), *(read_places() if step.blanks else ())]
    fitting = (place for place in candidates if step.blanks <= place.keys())
    return list({tuple(need.arn(place) for need in step.rights): place for place in fitting}.values())
