"""The checks of a preflight, or of an installation's test, as pages show them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from core.installations.preflight import Check, CheckOutcome

_ORDER = list(map(CheckOutcome, ("failed", "warning", "unknown", "ok")))


@dataclass(frozen=True, slots=True)
class CheckGroups:
    """What needs somebody first, what is in order, and rights of which nobody knows: most can't be tried without
    changing something."""

    urgent: list[Check]
    good: list[Check]
    rights: list[Check]


def grouped(given: Iterable[Check]) -> CheckGroups:
    """Each group in order of urgency."""
    checks = sorted(given, key=lambda check: _ORDER.index(check.state))
    rights = [check for check in checks if check.state is CheckOutcome.UNKNOWN and "-right:" in check.id]
    good = [check for check in checks if check.state is CheckOutcome.OK]
    return CheckGroups([check for check in checks if check not in rights and check not in good], good, rights)
