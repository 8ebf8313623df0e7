"""A preflight as a page shows it."""

from __future__ import annotations

from dataclasses import dataclass

from core.installations.preflight import Check, CheckOutcome
from mirrors.preflight.checks import Preflight

_ORDER = list(map(CheckOutcome, ("failed", "warning", "unknown", "ok")))


@dataclass(frozen=True, slots=True)
class Told:
    """A preflight as the page shows it: what needs somebody first, the rest folded."""

    preflight: Preflight
    urgent: list[Check]
    good: list[Check]
    rights: list[Check]

    @property
    def verdict(self) -> str:
        """One sentence."""
        failed = sum(check.state is CheckOutcome.FAILED for check in self.urgent)
        if failed:
            return f"{failed} of {len(self.preflight.checks)} checks failed: what to do stands below each."
        if not self.preflight.ok:
            return "Not everything that decides could be checked."
        others = f", {len(self.urgent)} to look at" if self.urgent else ""
        return f"Nothing that was checked stands in the way: {len(self.good)} checks are in order{others}."


def told_of(preflight: Preflight) -> Told:
    """Its checks in order of urgency."""
    checks = sorted(preflight.checks, key=lambda check: _ORDER.index(check.state))
    rights = [check for check in checks if check.state is CheckOutcome.UNKNOWN and "-right:" in check.id]
    good = [check for check in checks if check.state is CheckOutcome.OK]
    return Told(preflight, [check for check in checks if check not in rights and check not in good], good, rights)
