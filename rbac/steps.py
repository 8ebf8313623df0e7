"""What people do, by part of the site, and what each step needs: the apps register theirs when they are loaded.

`tests/rbac/test_steps.py` holds that every right that the code asks for is in a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from core.policies import auth_arn
from core.rights import Need, Place, Step
from rbac.models import Policy, User


@dataclass(frozen=True, slots=True)
class Area:
    """A part of the site. `places` gives what there is, at most so many."""

    title: str
    steps: tuple[Step, ...]
    places: Callable[[int], Iterable[Place]]


_areas: dict[str, Area] = {}


def register(area: Area) -> None:
    """Make the steps of a part known; again replaces them."""
    _areas[area.title] = area


def areas() -> tuple[Area, ...]:
    """All parts that are known."""
    return tuple(_areas.values())


def a_step(key: str, title: str, *needs: tuple[str, str]) -> Step:
    """A step from pairs of action and ARN with blanks."""
    return Step(key, title, tuple(Need(*need) for need in needs))


# --- access itself ----------------------------------------------------------------------------------------------------

_USER, _POLICY = auth_arn("user", "{user}"), auth_arn("policy", "{policy}")

ACCESS = (
    a_step("access.user", "See a user and what they may do", ("auth:ReadUser", _USER)),
    a_step("access.policy", "See a policy and what a change of it would do", ("auth:ReadPolicy", _POLICY)),
)


def _places(most: int) -> Iterable[Place]:
    for kind, model, field in (("user", User, "username"), ("policy", Policy, "name")):
        names = model.objects.order_by(field).values_list(field, flat=True)[:most]
        yield from ({kind: name} for name in names)


def register_access() -> None:
    """The steps of this app."""
    register(Area("Access", ACCESS, _places))
