"""What policies come to: which statements speak of a question, and which steps a change of a policy allows or breaks.

A step is something that people do (pause a mirror, run an export) with all that it needs. Its ARNs have blanks, like
`arn:lakefs:fs:::repository/{source}`; a place fills them. A blank that is filled with `*` stands for any other thing:
only a pattern that is as wide covers it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter

from core.access.policies import (
    ALL,
    PART_OF,
    SERVICES,
    USER_VARIABLE,
    Deciding,
    Policy,
    Right,
    Statement,
    evaluate_any,
    is_arn,
)
from core.errors import Invalid

Place = Mapping[str, str]
"""What fills the blanks of a step."""

DEEP = frozenset({"branch", "namespace", "path"})
"""Blanks that may hold slashes."""
LONGEST_ARN = 2048
_ACTION = re.compile(r"([a-z]+):[A-Za-z]+")


@dataclass(frozen=True, slots=True)
class Need:
    """A right that a step needs; each of `instead` would serve as well, unless any of them is denied."""

    action: str
    resource: str
    instead: tuple[Need, ...] = ()

    @property
    def each(self) -> tuple[Need, ...]:
        """It, and those that would serve."""
        return self, *self.instead

    def arn(self, place: Place) -> str:
        """The resource at a place."""
        return self.resource.format_map(place)

    def rights(self, place: Place) -> list[Right]:
        """The rights at a place of which one is enough."""
        return [(need.action, need.arn(place)) for need in self.each]


@dataclass(frozen=True, slots=True)
class PermissionStep:
    """Something that people do; `key` never changes, `title` is what they call it."""

    key: str
    title: str
    needs: tuple[Need, ...]

    @property
    def blanks(self) -> frozenset[str]:
        """What a place has to fill."""
        return frozenset(name for need in self.rights for _, name, _, _ in Formatter().parse(need.resource) if name)

    @property
    def rights(self) -> tuple[Need, ...]:
        """Every right that may matter to it."""
        return tuple(right for need in self.needs for right in need.each)


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """Whether somebody may take a step at a place, and the need that settles it: the first that is refused."""

    allowed: bool
    action: str
    arn: str
    deciding: Deciding | None


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with the policies that they have, and those that they would have."""

    name: str
    before: tuple[Policy, ...]
    after: tuple[Policy, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A step at a place that not everybody may take as before. The outcomes are those of the first who is concerned."""

    step: PermissionStep
    arns: tuple[str, ...]
    users_before: tuple[str, ...]
    users_after: tuple[str, ...]
    before: PolicyDecision
    after: PolicyDecision

    @property
    def gained(self) -> tuple[str, ...]:
        """Who may take it only then."""
        return tuple(name for name in self.users_after if name not in self.users_before)

    @property
    def lost(self) -> tuple[str, ...]:
        """Who may take it only now."""
        return tuple(name for name in self.users_before if name not in self.users_after)


def check_question(action: str, arn: str) -> None:
    """Raise Invalid, naming the field, unless that is an action and a resource that one can ask about."""
    match = _ACTION.fullmatch(action)
    if match is None or match[1] not in SERVICES:
        hint = f"Write one action, like fs:ReadRepository; services are {', '.join(sorted(SERVICES))}"
        raise Invalid(f"'{action[:80]}' is not an action", field="action", hint=hint)
    if len(arn) > LONGEST_ARN or not (arn == ALL or is_arn(arn)):
        raise Invalid(f"'{arn[:120]}' is not an ARN", field="arn", hint="Use * or arn:lakefs:fs:::repository/NAME")


def covering(policies: Iterable[Policy], action: str, arn: str, username: str) -> list[Deciding]:
    """Every statement that speaks of a question, or of the action that it is a part of, in the order of reading."""
    return [
        Deciding(policy.name, number, statement)
        for policy in policies
        for number, statement in enumerate(policy.statements, start=1)
        if any(statement.covers(name, arn, username) for name in _with_whole(action))
    ]


def _with_whole(action: str) -> tuple[str, ...]:
    """An action, and the one that it is a part of."""
    return (action, PART_OF[action]) if action in PART_OF else (action,)


def judge(step: PermissionStep, place: Place, policies: Sequence[Policy], username: str) -> PolicyDecision:
    """Whether somebody with these policies may take a step."""
    for need in step.needs:
        right, verdict = evaluate_any(policies, need.rights(place), username)
        if not verdict.allowed:
            break
    return PolicyDecision(verdict.allowed, *right, verdict.deciding)


# --- what a change of policies changes --------------------------------------------------------------------------------


def changes(step: PermissionStep, places: Iterable[Place], people: Iterable[Person]) -> Iterator[Change]:
    """What becomes of a step, by place. People whom the same statements concern are judged once."""
    kinds = _kinds(step, people)
    touched = [kind for kind in kinds if kind[0] != kind[1]]
    for place in places:
        concerned = next((pair for kind in touched if _differs(pair := _judged(step, place, kind, kinds[kind]))), None)
        if concerned:
            yield _change(step, place, kinds, *concerned)


def _change(
    step: PermissionStep,
    place: Place,
    kinds: Mapping[_Kind, Sequence[str]],
    before: PolicyDecision,
    after: PolicyDecision,
) -> Change:
    judged = [(names, *_judged(step, place, kind, names)) for kind, names in kinds.items()]
    return Change(
        step,
        tuple(dict.fromkeys(need.each[-1].arn(place) for need in step.needs)),
        tuple(sorted(name for names, old, _ in judged if old.allowed for name in names)),
        tuple(sorted(name for names, _, new in judged if new.allowed for name in names)),
        before,
        after,
    )


def _judged(
    step: PermissionStep, place: Place, kind: _Kind, names: Sequence[str]
) -> tuple[PolicyDecision, PolicyDecision]:
    return judge(step, place, kind[0], names[0]), judge(step, place, kind[1], names[0])


def _differs(pair: tuple[PolicyDecision, PolicyDecision]) -> bool:
    return pair[0].allowed != pair[1].allowed


_Kind = tuple[tuple[Policy, ...], tuple[Policy, ...], str]


def _kinds(step: PermissionStep, people: Iterable[Person]) -> dict[_Kind, list[str]]:
    """Names by what there is of policies that speak of a step; by themselves where `${user}` is in them."""
    kinds: dict[_Kind, list[str]] = {}
    for person in people:
        before, after = _about(step, person.before), _about(step, person.after)
        own = person.name if any(map(_is_personal, (*before, *after))) else ""
        kinds.setdefault((before, after, own), []).append(person.name)
    return kinds


def _about(step: PermissionStep, policies: Iterable[Policy]) -> tuple[Policy, ...]:
    """Policies that speak of one of the step's actions."""
    return tuple(policy for policy in policies if any(_names(statement, step) for statement in policy.statements))


def _names(statement: Statement, step: PermissionStep) -> bool:
    return any(statement.names(action) for need in step.rights for action in _with_whole(need.action))


def _is_personal(policy: Policy) -> bool:
    return any(USER_VARIABLE in resource for statement in policy.statements for resource in statement.resources)


def places_named(step: PermissionStep, policies: Iterable[Policy]) -> Iterator[Place]:
    """Places that the policies' own resources name, and any other: where a step may change though nothing is there."""
    anywhere = dict.fromkeys(step.blanks, ALL)
    yield anywhere
    shapes = [_shape(need) for need in step.rights]
    for resource in dict.fromkeys(
        r for policy in policies for statement in policy.statements for r in statement.resources
    ):
        for shape in shapes:
            if (match := shape.fullmatch(resource)) and USER_VARIABLE not in resource:
                yield anywhere | match.groupdict()


def _shape(need: Need) -> re.Pattern[str]:
    """What a resource looks like that fills a need's blanks."""
    return re.compile(
        "".join(
            re.escape(text) + (f"(?P<{name}>{'.+' if name in DEEP else '[^/]+'})" if name else "")
            for text, name, _, _ in Formatter().parse(need.resource)
        )
    )
