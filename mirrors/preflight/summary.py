"""A preflight as a page shows it."""

from __future__ import annotations

from dataclasses import dataclass

from core.installations.preflight import CheckOutcome
from installations.check_groups import CheckGroups, grouped
from mirrors.preflight.checks import Preflight


@dataclass(frozen=True, slots=True)
class Told:
    """A preflight as the page shows it: what needs somebody first, the rest folded."""

    preflight: Preflight
    groups: CheckGroups

    @property
    def verdict(self) -> str:
        """One sentence."""
        urgent, good = self.groups.urgent, self.groups.good
        failed = sum(check.state is CheckOutcome.FAILED for check in urgent)
        if failed:
            return f"{failed} of {len(self.preflight.checks)} checks failed: what to do stands below each."
        if not self.preflight.ok:
            return "Not everything that decides could be checked."
        others = f", {len(urgent)} to look at" if urgent else ""
        return f"Nothing that was checked stands in the way: {len(good)} checks are in order{others}."


def told_of(preflight: Preflight) -> Told:
    """Its checks in order of urgency."""
    return Told(preflight, grouped(preflight.checks))
