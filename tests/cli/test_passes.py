"""Commands of passes against the application, on stores in memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from core.errors import Invalid
from rbac.models import User
from replication.models import Pass, Rule
from tests.cli.speaking import Terminal
from tests.mirrors.harness import Deployment
from tests.replication.test_passes import keys_of, through
from tests.replication.world import AWAY, World, refusing, world

pytestmark = pytest.mark.django_db


@pytest.fixture
def w(lm: Deployment) -> object:
    with world(lm) as made:
        yield made


@pytest.fixture
def olgas(w: World, terminal_of: Callable[[User], Terminal], owner: User) -> Terminal:
    """An administrator's terminal; whoever waits there has the work done meanwhile."""
    return terminal_of(owner)


def working(w: World) -> object:
    """Each pause of a command that waits is a round of work."""

    def pause(seconds: float) -> None:
        w.look()
        w.copy()

    return mock.patch("lakemirror.wait.time.sleep", pause)


def test_a_resync_is_waited_for_and_its_end_is_the_status(w: World, olgas: Terminal) -> None:
    keys_of(w, 4)
    w.rule()
    with working(w):
        done = olgas("rule", "resync", "r", "--wait")
    assert done.exit_code == 0 and "Pass 1, resync of r: Completed" in done.stdout, done.output
    assert "4 copied (20 bytes), 0 failed" in done.stdout and "copy" in done.stdout
    w.away.before = refusing(Invalid("too large"), "PUT", keys="k0001")
    with working(w):
        failed = olgas("rule", "resync", "r", "--all", "--prefix", "k", "--wait")
    assert failed.exit_code == 1, failed.output
    assert "Completed with failures: 1 object could not be copied" in failed.stdout
    assert "keys that begin with k; everything, again" in failed.stdout
    assert olgas("rule", "pass", "2").exit_code == 1 and olgas("rule", "pass", "1").exit_code == 0
    listed = olgas("rule", "passes", "r").stdout
    assert "Completed with failures" in listed and "4 of 4" in listed
    assert olgas("rule", "pass", "9").exit_code == 4


def test_one_goes_on_at_a_time_and_can_be_canceled(w: World, olgas: Terminal) -> None:
    w.rule()
    begun = olgas("rule", "resync", "r", "--older-than", "7d")
    assert begun.exit_code == 0 and "Running" in begun.stdout
    older = Pass.objects.get().older_than
    assert older is not None and 6.9 < (Pass.objects.get().began_at - older).total_seconds() / 86400 < 7.1
    assert olgas("rule", "resync", "r").exit_code == 5
    assert olgas("rule", "pass", "1", "--cancel").exit_code == 1
    assert Pass.objects.get().state == "canceled"
    assert olgas("rule", "resync", "r", "--older-than", "soon").exit_code == 2


def test_a_dry_run_of_a_rule_and_of_a_file(w: World, olgas: Terminal, tmp_path: Path) -> None:
    keys_of(w, 4)
    file = tmp_path / "rule.json"
    body = {"name": "n", "source": {"region": "us-east-1", "uri": "s3://src"}}
    file.write_text(json.dumps(body | {"targets": [{"region": AWAY, "uri": "s3://out"}]}))
    with working(w):
        told = olgas("rule", "dry-run", "-f", str(file), "--wait")
    assert told.exit_code == 0 and "dry-run of n: Completed" in told.stdout, told.output
    assert "Report       4 rows" in told.stdout and not Rule.objects.exists()
    w.rule()
    assert olgas("rule", "dry-run", "r", "--link", "1").exit_code == 0
    through(w, Pass.objects.first())
    assert olgas("rule", "dry-run", "r", "-f", str(file)).exit_code == 2
    assert olgas("rule", "dry-run").exit_code == 2
    assert olgas("rule", "dry-run", "-f", str(file), "--link", "1").exit_code == 2
    told = olgas("rule", "estimate", "r")
    assert told.exit_code == 0 and "All 4 objects were looked at." in told.stdout, told.output
    assert "Link 1: s3://out (eu-west-1): 4 objects, 20 bytes" in told.stdout and "put requests" in told.stdout
    file.write_text(file.read_text().replace("s3://out", "s3://other"))
    w.away.buckets["other"] = {}
    assert "4 objects" in olgas("rule", "estimate", "-f", str(file)).stdout
    assert olgas("rule", "estimate").exit_code == 2
    assert w.away.written == []
