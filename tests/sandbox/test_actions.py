"""What of an action file the stand-in takes, and what it makes of it."""

from __future__ import annotations

from typing import Any

import pytest

from core.installations.webhook_action import FILLED_IN, SECRET_VARIABLE, lakefs_action
from sandbox.lakefs.actions import hooks_of


def hooks(action: dict[str, Any], event: str = "post-commit") -> list[dict[str, str]]:
    return [dict(hook.headers) for hook in hooks_of(action, event, "main")]


def test_a_variable_of_the_environment_is_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET_VARIABLE, "s3cr3t")
    assert hooks(lakefs_action("http://here", FILLED_IN)) == [{"Authorization": "Bearer s3cr3t"}]
    assert hooks(lakefs_action("http://here", f"{{{{ENV.{SECRET_VARIABLE}}}}}")) == [{"Authorization": "Bearer s3cr3t"}]


def test_of_other_variables_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_SECRET", "s3cr3t")
    assert hooks(lakefs_action("http://here", "{{ ENV.OTHER_SECRET }}")) == [{"Authorization": "Bearer "}]


def test_without_the_variable_no_hook_of_the_event_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SECRET_VARIABLE, raising=False)
    action = lakefs_action("http://here", FILLED_IN)
    with pytest.raises(ValueError, match=f"{SECRET_VARIABLE} is not in the environment"):
        hooks(action)
    assert hooks(action, "pre-commit") == [], "it is of another event"
