"""A check on demand, by real Spark over real stores."""

from __future__ import annotations

from unittest import mock

import pytest

from core.mirroring.object_check import Depth
from mirrors.models import Blocker, Mirror, Run
from mirrors.services.validations import validation_ask
from tests.e2e.conftest import World

pytestmark = [pytest.mark.spark]


def test_a_deeper_check_on_demand_reads_every_object(caught_up: World) -> None:
    with mock.patch("mirrors.services.validations.require_operation", return_value=("fs:OperateMirror", "*")):
        asked = validation_ask(actor="system:tests", mirror=Mirror.objects.get(), branch="main", depth=Depth.CONTENT)
    caught_up.work()
    asked.refresh_from_db()
    assert (asked.state, asked.entries, asked.problems, asked.error) == ("done", 2, 0, "")
    run = Run.objects.get(job="validate")
    assert (run.outcome, run.looked_up) == ("done", 2)
    assert run.requests >= 4
    assert not Blocker.objects.exists()
