"""A short seed of the soak of real processes, and the death of a whole deployment. `scripts/soak` runs long seeds."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.fleet import REGIONS
from tests.fleet.books import what_holds
from tests.fleet.fleet import Fleet, fleet
from tests.fleet.soak import soak
from tests.postgres import quick_server

_PATIENCE = 150
"""Seconds for what takes a few: who was killed holds a duty for up to a minute, and a machine may be slow."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Of a short name, for a socket lies in it."""
    with tempfile.TemporaryDirectory(prefix="lakemirror-fleet-") as made:
        yield Path(made)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with quick_server() as url:
        yield url


@pytest.fixture
def database(server: str, request: pytest.FixtureRequest) -> str:
    """An empty one on the server."""
    name = f"fleet_{abs(hash(request.node.name))}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return make_conninfo(server, dbname=name)


def test_processes_that_are_killed_and_live_on_different_days_keep_every_promise(folder: Path, database: str) -> None:
    report = soak(folder, database, promotions=60, seed=1, kill_every=4.0, routes=3, most_branches=5)
    assert report.problems == [], "\n".join(report.lines())
    assert report.promotions >= 60
    assert report.kills
    assert report.reads > 20
    assert report.deeds["merges held"]


def test_either_deployment_may_die_and_the_other_goes_on(folder: Path, database: str) -> None:
    with fleet(folder, database, seed=1) as both:
        both.begin(routes=2, pause=0.02, most_branches=3, readers=False)
        both.world.begin(faulty=False)
        for region in REGIONS:
            _outlive(both, region)
        both.world.end()
        both.wait(lambda: not both.world.behind(), _PATIENCE, "catching up")
        both.stop()
        assert both.world.report()["problems"] + both.misbooked() == []
        assert both.what_holds() == []
        coverage, metaranges, *others = what_holds(both._rows, "lake-0-mirror")
        assert " complete" in coverage
        assert " complete" in metaranges
        assert any(line.startswith("lake-0-mirror: promote: 0 failures, due in ") for line in others)


def _outlive(both: Fleet, region: str) -> None:
    """The deployment of a region dies: nothing moves there until it is back, and the other one goes on."""
    (other,) = set(REGIONS) - {region}
    for member in both.of(region):
        member.kill()
    time.sleep(0.5)  # for calls that were under way
    stands, goes_on = _moves(both, region), _moves(both, other)
    both.wait(lambda: _moves(both, other) > goes_on + 3, _PATIENCE, f"{other} alone")
    assert _moves(both, region) == stands
    both.revive(all_=True)
    both.wait(lambda: _moves(both, region) > stands, _PATIENCE, f"{region}'s coming back")


def _moves(both: Fleet, region: str) -> int:
    """How often a branch was moved in a region."""
    mirrors = {one["mirror"] for one in both.world.mirrors() if one["region"] == region}
    return sum(mirror in mirrors for mirror, *_ in both.world.moves())
