"""What is said of each kind of alert."""

from __future__ import annotations

import pytest

from core.mirroring.states import State, Tone
from core.notifications.kinds import OF_MIRRORS, AlertKind, Severity


@pytest.mark.parametrize("kind", list(AlertKind))
def test_every_kind_says_what_to_do(kind: AlertKind) -> None:
    assert kind.remedy.endswith(".") and kind.word[0].isupper() and len(kind) <= 32


def test_every_state_that_needs_somebody_has_an_alert() -> None:
    assert {state for state in State if state.tone is Tone.BAD} <= set(OF_MIRRORS)


def test_severities_sort_the_worst_first_as_texts() -> None:
    assert sorted(severity.value for severity in Severity) == [one.value for one in reversed(Severity)]
