"""How long until a thing that is missing or wrong is looked at again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.mirroring.object_check import Reason
from deployment import config
from mirrors.models import Blocker, Mirror
from mirrors.models.problem import Problem
from mirrors.transitions.blockers import FRESH, note_problems
from tests.deployment.test_config import SOURCE
from tests.mirrors.harness import Deployment

pytestmark = pytest.mark.django_db(transaction=True)

TOLD = {
    "cooldown_on_missing": "50s",
    "metarange_presence_cache": {"cooldown": "20s"},
    "range_presence_cache": {"cooldown": "10s"},
    "object_presence_cache": {"cooldown": "4s"},
}


def tell(monkeypatch: pytest.MonkeyPatch, validator: Mapping[str, Any]) -> None:
    settings = config.parse({**SOURCE, "validator": validator})
    monkeypatch.setattr(config, "current", lambda: settings)


def pauses(problem: Problem, *, ago: timedelta = timedelta(0), looks: int = 9) -> list[float]:
    """The pauses after so many looks that found the same, the first of them `ago`."""
    mirror = Mirror.objects.get()
    noted = []
    for _ in range(looks):
        note_problems(mirror, [problem])
        row = Blocker.objects.get()
        noted.append(round((row.look_at - datetime.now(UTC)).total_seconds(), 1))
        Blocker.objects.update(first_seen=datetime.now(UTC) - ago)
    return noted


@pytest.mark.parametrize(
    ("kind", "reason", "longest"),
    [
        ("metarange", Reason.METARANGE_MISSING, 20),
        ("range", Reason.RANGE_MISSING, 10),
        ("object", Reason.MISSING, 4),
    ],
)
def test_while_it_may_be_arriving_the_longest_pause_is_its_kinds_cooldown(
    lm: Deployment, monkeypatch: pytest.MonkeyPatch, kind: str, reason: str, longest: float
) -> None:
    tell(monkeypatch, TOLD)
    noted = pauses(Problem(kind, "h", "data/a", reason))
    assert noted[:3] == pytest.approx([0.5, 1, 2], abs=0.2)
    assert max(noted) == pytest.approx(longest, abs=0.2) and noted[-1] == pytest.approx(longest, abs=0.2)


@pytest.mark.parametrize(
    ("problem", "ago"),
    [
        (Problem("object", "h", "data/a", Reason.MISSING), FRESH),
        (Problem("object", "h", "data/a", Reason.MISSING, gone_at_source=True), timedelta(0)),
        (Problem("object", "h", "data/a", Reason.SIZE), timedelta(0)),
        (Problem("range", "h", "_lakefs/r", Reason.RANGE_DAMAGED), timedelta(0)),
        (Problem("record", "h", "h", "source-corrupt"), timedelta(0)),
    ],
    ids=["missing for long", "gone at the source too", "wrong", "damaged", "a record"],
)
def test_whatever_else_it_is_the_longest_pause_is_cooldown_on_missing(
    lm: Deployment, monkeypatch: pytest.MonkeyPatch, problem: Problem, ago: timedelta
) -> None:
    tell(monkeypatch, TOLD)
    assert pauses(problem, ago=ago)[-1] == pytest.approx(50, abs=0.2)


def test_no_kinds_pause_is_longer_than_cooldown_on_missing(lm: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    tell(monkeypatch, {"cooldown_on_missing": "3s"})
    assert pauses(Problem("metarange", "h", "_lakefs/m", Reason.METARANGE_MISSING))[-1] == pytest.approx(3, abs=0.2)
