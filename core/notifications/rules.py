"""Which alerts a channel is told of, and how often. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from core.labels import fit, pattern_problem
from core.notifications.hours import Hours
from core.notifications.kinds import AlertKind, Severity

AGAIN = {0: "Never", 3600: "Every hour", 14400: "Every 4 hours", 86400: "Every 24 hours"}
"""After how many seconds a channel may be told of an alert that is still open, and in words."""
MOST_PATTERNS, LONGEST_PATTERN = 100, 200


@dataclass(frozen=True, slots=True)
class Rule:
    """What a channel hears of; what is empty leaves nothing out. As it is made, it hears of everything.

    `names` are patterns with `*` and `?` of mirrors and rules, and of exports as `repository/branch`; `regions` the
    same of regions; `labels` are those of core.labels. Alerts that are about none of these have no name or label to be
    left out by, and those that are about no region are heard everywhere. Outside of its `hours` messages wait.
    """

    least_severity: str = Severity.WARNING.value
    kinds: Sequence[str] = ()
    names: Sequence[str] = ()
    regions: Sequence[str] = ()
    tell_again_seconds: int = 0
    hours: Hours | None = None
    labels: Sequence[str] = ()

    def hears(
        self, kind: str, severity: str, *, name: str = "", region: str = "", labels: Mapping[str, str] | None = None
    ) -> bool:
        """Whether an alert is told. `name`, `labels`: of the mirror, export or rule; "" for what is none of them."""
        return (
            Severity(severity).level >= Severity(self.least_severity).level
            and (not self.kinds or kind in self.kinds)
            and _fits(name, self.names)
            and _fits(region, self.regions)
            and (not name or fit(labels or {}, self.labels))
        )

    def problem(self) -> tuple[str, str]:
        """The first field that can't be so, and why; two "" if all can."""
        if self.least_severity not in {*Severity}:
            return "least_severity", f"'{self.least_severity[:40]}' is not one of {', '.join(Severity)}"
        if odd := [kind for kind in self.kinds if kind not in {*AlertKind}]:
            return "kinds", f"'{odd[0][:40]}' is not one of {', '.join(AlertKind)}"
        for field, patterns in (("names", self.names), ("regions", self.regions), ("labels", self.labels)):
            if len(patterns) > MOST_PATTERNS or any(not 0 < len(one) <= LONGEST_PATTERN for one in patterns):
                return field, f"takes {MOST_PATTERNS} patterns at most, of 1 to {LONGEST_PATTERN} characters each"
        if odd_labels := list(filter(None, map(pattern_problem, self.labels))):
            return "labels", odd_labels[0]
        if self.tell_again_seconds not in AGAIN:
            return "tell_again_seconds", f"{self.tell_again_seconds} is not one of {', '.join(map(str, AGAIN))}"
        return self.hours.problem() if self.hours else ("", "")


def _fits(text: str, patterns: Sequence[str]) -> bool:
    return not text or not patterns or any(fnmatchcase(text, pattern) for pattern in patterns)
