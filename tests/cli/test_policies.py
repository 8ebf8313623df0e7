"""Commands that print policies, against the application itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from rbac.models import User
from tests.cli.speaking import API, StandIn, Terminal
from tests.mirrors.factories import make_company
from tests.mirrors.harness import Deployment

pytestmark = pytest.mark.django_db


@pytest.fixture
def olgas(lm: Deployment, terminal_of: Callable[[User], Terminal], owner: User) -> Terminal:
    """An administrator's terminal, where there are mirrors."""
    make_company(datetime.now(UTC))
    return terminal_of(owner)


def test_what_lakefs_is_to_be_given_is_printed_as_lakectl_takes_it(olgas: Terminal) -> None:
    done = olgas("mirror", "policy", "analytics-eu", "--side", "source", "--of", "lakefs")
    assert (done.exit_code, done.stderr) == (0, "")
    assert json.loads(done.stdout)["statement"][0]["action"] == ["fs:ListRepositories"]
    store = json.loads(olgas("mirror", "policy", "analytics-eu", "--side", "destination", "--of", "store").stdout)
    assert store["Version"] == "2012-10-17"
    assert olgas.json("mirror", "policy", "analytics-eu")["source"]["region"] == "us-east-1"


def test_a_mirror_to_be_made_has_policies(olgas: Terminal) -> None:
    place = ["--region", "eu-west-1", "--storage-namespace", "s3://dst/new", "--tags"]
    told = olgas.json("mirror", "policy", "lake-new", "--repository", "lake", *place)
    assert told["planned"] and "fs:CreateTag" in str(told["destination"]["lakefs"])
    follows = [*place, "--object-replication", "managed", "--follow-gc"]
    told = olgas.json("mirror", "policy", "lake-new", "--repository", "lake", *follows)
    assert "s3:GetObjectLegalHold" in str(told["destination"]["store"])
    assert olgas("mirror", "policy", "analytics-eu", "--follow-gc").exit_code == 2  # a native one
    assert olgas("mirror", "policy", "analytics-eu", "--object-replication", "managed").exit_code == 2
    assert olgas("mirror", "policy", "lake-new", "--repository", "lake").exit_code == 4
    assert olgas("mirror", "policy", "analytics-eu", "--tags").exit_code == 2
    assert olgas("mirror", "policy", "analytics-eu", "--of", "store").exit_code == 2


def test_an_installations_policies_are_printed(olgas: Terminal) -> None:
    assert "analytics" in str(olgas.json("installation", "policy", "us-east-1")["lakefs"])
    done = olgas("installation", "policy", "us-east-1", "--of", "store")
    assert json.loads(done.stdout)["Statement"]
    assert olgas("installation", "policy", "mars").exit_code == 4


def test_a_place_that_nobody_knows_is_a_no_and_what_is_left_out_is_told(server: StandIn, run: Terminal) -> None:
    server.says("GET", "/installations/mars/policy", {"region": "mars", "lakefs": {}, "store": None, "left_out": 2})
    done = run("installation", "policy", "mars", "--of", "store")
    assert (done.exit_code, done.stdout) == (1, "") and "no place in that store" in done.stderr
    done = run("installation", "policy", "mars")
    assert json.loads(done.stdout)["left_out"] == 2 and "2 left out" in done.stderr
    assert server.asked[0].path == f"{API}/installations/mars/policy"
