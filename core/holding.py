"""Merges that are held until enough regions have them: the policy, who decides, and what the caller is told. Pure.

lakeFS asks before it moves a branch to a merge commit; what we answer decides whether it does. The commit and all that
it names can be read meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from core.errors import Invalid
from core.mirroring.branch_selection import LONGEST_GLOB

MOST_POLICIES = 20
MOST_COPIES = 8
USUAL_SECONDS, LEAST_SECONDS, MOST_SECONDS = 45, 1, 600
MOST_HELD = 64
"""So many merges are held at once; one more is refused at once."""
MOST_HELD_OF_ONE = 48
"""So many of them may be of one repository, so that its merges never keep those of all others from being held."""
HOOK_TIMEOUT = 60
"""lakeFS's own time-out of a hook, in seconds, where the action file names none."""
MARGIN = 5
"""So many seconds before that time-out the answer is given, or lakeFS would not hear it."""
HELD_EVENT = "pre-merge"
REFUSED_EVENTS = ("pre-commit", "pre-cherry-pick", "pre-revert")
"""Nothing can be proven for what these make: its metarange is made after the question."""
HOOK_ID = "lakemirror-hold-see-hook-output"
"""What the caller of a refused merge reads in lakeFS's error: our words stand in the hook's output alone."""


class WhenLate(StrEnum):
    """What becomes of a merge that is not there in time."""

    REFUSE = "refuse"
    ALLOW = "allow"


@dataclass(frozen=True, slots=True)
class HoldPolicy:
    """Merges into branches of this glob wait until `copies` regions have them, `hold_seconds` at most."""

    branches: str
    copies: int = 1
    hold_seconds: int = USUAL_SECONDS
    when_late: str = WhenLate.REFUSE.value

    def covers(self, branch: str) -> bool:
        """Whether merges into the branch are held by it."""
        return fnmatchcase(branch, self.branches)

    def stored(self) -> dict[str, Any]:
        """As it is stored, and as the API gives it."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.branches} copies={self.copies} seconds={self.hold_seconds} late={self.when_late}"


def parse_policies(given: object) -> list[dict[str, Any]]:
    """Policies as they are stored. Raises Invalid, naming what is wrong by its place."""
    if not isinstance(given, list) or len(given) > MOST_POLICIES:
        raise Invalid(f"hold is a list of at most {MOST_POLICIES} policies", field="hold")
    policies = [_policy(one, f"hold.{number}") for number, one in enumerate(given)]
    globs = [policy.branches for policy in policies]
    if twice := next((glob for glob in globs if globs.count(glob) > 1), None):
        raise Invalid(f"hold names '{twice}' twice", field="hold")
    return [policy.stored() for policy in policies]


def _policy(given: object, where: str) -> HoldPolicy:
    if not isinstance(given, Mapping):
        raise Invalid(f"{where} is no object with branches, copies, hold_seconds and when_late", field=where)
    known = HoldPolicy.__slots__
    if unknown := sorted(str(name) for name in given if name not in known):
        raise Invalid(f"{where}.{unknown[0]} is not a field here (known: {', '.join(known)})", field=where)
    branches, when_late = given.get("branches"), given.get("when_late", WhenLate.REFUSE.value)
    if not isinstance(branches, str) or not 0 < len(branches) <= LONGEST_GLOB or "\0" in branches:
        raise Invalid(f"{where}.branches is a branch's name or a glob", field=f"{where}.branches")
    if when_late not in set(WhenLate):
        raise Invalid(f"{where}.when_late is refuse or allow", field=f"{where}.when_late")
    return HoldPolicy(
        branches,
        _whole(given.get("copies", 1), 1, MOST_COPIES, f"{where}.copies"),
        _whole(given.get("hold_seconds", USUAL_SECONDS), LEAST_SECONDS, MOST_SECONDS, f"{where}.hold_seconds"),
        str(when_late),
    )


def _whole(given: object, least: int, most: int, where: str) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
        raise Invalid(f"{where} is a whole number from {least} to {most}", field=where)
    return given


_OF_A_LINE = {"copies": "copies", "seconds": "hold_seconds", "late": "when_late"}


def policy_of_line(line: str) -> dict[str, Any]:
    """What a line of a form says, as a policy gives itself as text: `main copies=2 seconds=45 late=refuse`. Raises
    Invalid."""
    branches, *rest = line.split()
    policy: dict[str, Any] = {"branches": branches}
    for part in rest:
        name, equals, value = part.partition("=")
        if name not in _OF_A_LINE or not equals or not value:
            raise Invalid(f"hold: '{part[:40]}' is none of copies=, seconds=, late=", field="hold")
        policy[_OF_A_LINE[name]] = int(value) if value.isascii() and value.isdigit() else value
    return policy


def policies_of(stored: Iterable[Mapping[str, Any]]) -> list[HoldPolicy]:
    """Stored policies; what a newer version stored besides is left out."""
    known = HoldPolicy.__slots__
    return [HoldPolicy(**{name: one[name] for name in known if name in one}) for one in stored]


def policy_for(stored: Iterable[Mapping[str, Any]], branch: str) -> HoldPolicy | None:
    """The strictest of a mirror's policies that cover a branch."""
    covering = [policy for policy in policies_of(stored) if policy.covers(branch)]
    return strictest(covering) if covering else None


def strictest(policies: Sequence[HoldPolicy]) -> HoldPolicy:
    """As many copies as any of them wants, in the shortest of their times; late is refused if any of them refuses."""
    refused = any(policy.when_late == WhenLate.REFUSE for policy in policies)
    return HoldPolicy(
        policies[0].branches,
        max(policy.copies for policy in policies),
        min(policy.hold_seconds for policy in policies),
        (WhenLate.REFUSE if refused else WhenLate.ALLOW).value,
    )


def seconds_to_hold(policy: HoldPolicy, hook_timeout: int) -> int:
    """How long the answer may wait: never so long that lakeFS has stopped listening."""
    return max(LEAST_SECONDS, min(policy.hold_seconds, hook_timeout - MARGIN))


@dataclass(frozen=True, slots=True)
class Arrival:
    """How much of a held commit is in one region. `why` is what it waits for, in words; "" where it is complete."""

    region: str
    why: str
    arrived: int | None = None
    objects: int | None = None

    @property
    def complete(self) -> bool:
        """Whether the commit is proven whole there."""
        return not self.why


def regions_of(arrivals: Iterable[Arrival]) -> list[str]:
    """The regions in which the commit is complete, each once."""
    return sorted({one.region for one in arrivals if one.complete})


def late_words(commit: str, arrivals: Sequence[Arrival], rate: float | None) -> str:
    """What the caller of a late merge is told. `rate`: objects a second that arrived in the region that lacks most."""
    waiting = [one for one in arrivals if not one.complete]
    if not waiting:
        return f"{commit[:8]} is not complete in enough regions yet. Merge again: what arrived stays"
    parts = [_told(commit, one) for one in waiting]
    lacking = max((one.objects - one.arrived for one in waiting if one.objects and one.arrived is not None), default=0)
    more = f"; about {max(1, round(lacking / rate)):,} s more" if rate and lacking else ""
    return f"{'; '.join(parts)}{more}. Merge again: what arrived stays"


def _told(commit: str, one: Arrival) -> str:
    if one.objects and one.arrived is not None and one.arrived < one.objects:
        return f"{one.arrived:,} of {one.objects:,} objects of {commit[:8]} are in {one.region}"
    return f"{commit[:8]} is not complete in {one.region}: {one.why}"
