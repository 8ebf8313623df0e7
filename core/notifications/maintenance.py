"""A time of planned work, in which nothing is told of alerts about some mirrors, exports or regions. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from core.errors import Invalid
from core.notifications.rules import LONGEST_PATTERN, MOST_PATTERNS

LONGEST_REASON = 200
LONGEST = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Maintenance:
    """`names`: patterns of mirrors and rules, and of exports as `repository/branch`; `regions`: the same of regions.
    Where both are given, an alert has to fit both; where neither is, the window is for all alerts."""

    starts_at: datetime
    ends_at: datetime
    reason: str
    names: Sequence[str] = ()
    regions: Sequence[str] = ()

    def covers(self, *, name: str, region: str) -> bool:
        """Whether an alert is about what is worked on. `name`, `region`: "" for an alert that has none, which fits no
        pattern."""
        return _fits(name, self.names) and _fits(region, self.regions)

    @property
    def subject(self) -> str:
        """What it is for, in words."""
        parts = [", ".join(self.names)] if self.names else []
        parts += [f"in {', '.join(self.regions)}"] if self.regions else []
        return " ".join(parts) or "everything"

    def check(self, now: datetime) -> None:
        """Raise Invalid for the first thing that can't be so."""
        for field, problem, hint in self._problems(now):
            raise Invalid(problem, field=field, hint=hint)

    def _problems(self, now: datetime) -> Iterator[tuple[str, str, str]]:
        if not self.reason.strip() or len(self.reason) > LONGEST_REASON:
            yield "reason", f"must have 1 to {LONGEST_REASON} characters", "Say what is being done, and by whom"
        if self.ends_at <= max(self.starts_at, now):
            yield "ends_at", "must be in the future, and after the start", ""
        elif self.ends_at - self.starts_at > LONGEST:
            yield "ends_at", f"a window lasts {LONGEST.days} days at most", "Create another one afterwards"
        for field, patterns in (("names", self.names), ("regions", self.regions)):
            if len(patterns) > MOST_PATTERNS or any(not 0 < len(one) <= LONGEST_PATTERN for one in patterns):
                yield field, f"takes {MOST_PATTERNS} patterns at most, of 1 to {LONGEST_PATTERN} characters each", ""


def _fits(text: str, patterns: Sequence[str]) -> bool:
    return not patterns or (text != "" and any(fnmatchcase(text, pattern) for pattern in patterns))
