"""A short seed of the soak of rules by real processes. It takes some minutes, so LAKEMIRROR_RULE_FLEET asks for it;
`scripts/soak rules` runs long seeds."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from tests.postgres import quick_server
from tests.rule_fleet import SABOTAGE
from tests.rule_fleet.sabotage import MUTANTS
from tests.rule_fleet.soak import Plan, Report, soak

pytestmark = pytest.mark.skipif(not os.environ.get("LAKEMIRROR_RULE_FLEET"), reason="LAKEMIRROR_RULE_FLEET is not set")


def run(seed: int, *, settle_minutes: float = 15.0) -> Report:
    with quick_server() as database, tempfile.TemporaryDirectory(prefix="lakemirror-rules-") as folder:
        plan = Plan(minutes=0.5, quiet_minutes=0.3, seed=seed, settle_minutes=settle_minutes, every=6.0)
        return soak(Path(folder), database, plan)


def test_rules_keep_every_promise_while_everything_is_killed() -> None:
    report = run(1)
    assert report.problems == [], "\n".join(report.lines())
    assert report.trouble.total() and report.reads > 20 and report.deeds["deletions"]


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_what_is_broken_on_purpose_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SABOTAGE, name)
    assert run(1, settle_minutes=4.0).problems
