"""What the source's garbage collection has taken, or may take, before it arrived."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from unittest import mock

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.errors import Denied
from core.mirroring.explain.gc_rules import BothRules, RulesRead, rules_json
from core.types import GcRules
from mirrors.models import Commit, Mirror, SourceBranch
from mirrors.queries.gc_exposure import gone_of, unreached_of
from rbac.models import User
from tests.api import Api
from tests.mirrors.factories import Line, at_mirror, block, make_mirror, make_repository
from tests.mirrors.harness import Deployment

NOW = datetime(2026, 11, 21, 9, 16, 34, tzinfo=UTC)
SAFETY = "/service/replication/v1/repositories/lake/mirrors/lake-eu/gc-safety"

pytestmark = pytest.mark.django_db


@pytest.fixture
def mirror() -> Mirror:
    return make_mirror("lake-eu", make_repository("lake", now=NOW), now=NOW)


@pytest.fixture
def main(mirror: Mirror) -> Line:
    """main at A, which the mirror has."""
    line = Line(mirror.source, "main", NOW)
    line.reached(mirror, line.commit("A", ago=600))
    return line


@pytest.fixture
def left(mirror: Mirror, main: Line) -> list[Commit]:
    """B and C, which are pending, and from which main was moved back to A, and on to D."""
    commits = [main.commit("B", ago=90), main.commit("C", ago=60)]
    main.commit("D", ago=30, parents=main.commits[:1], forward=False)
    for commit in main.commits[1:]:
        at_mirror(mirror, commit, "checking", now=NOW)
    return commits


def ids(mirror: Mirror) -> list[str]:
    return [one.sha for one in unreached_of(mirror).commits]


def test_commits_that_a_branch_was_moved_away_from_may_go(mirror: Mirror, main: Line, left: list[Commit]) -> None:
    found = unreached_of(mirror)
    assert [one.sha for one in found.commits] == [left[1].sha, left[0].sha]
    assert {(one.last.branch, one.last.why, one.last.since) for one in found.commits} == {
        ("main", "moved", NOW - timedelta(seconds=30))
    }
    assert (found.missing.unchecked, found.missing.objects, found.at_least) == (2, None, False)


def test_what_has_arrived_is_safe(mirror: Mirror, main: Line, left: list[Commit]) -> None:
    at_mirror(mirror, left[0], "complete", now=NOW)
    assert ids(mirror) == [left[1].sha]


def test_what_another_branch_leads_to_is_safe(mirror: Mirror, main: Line, left: list[Commit]) -> None:
    Line(mirror.source, "kept", NOW).point_to(left[0], ago=10)
    assert ids(mirror) == [left[1].sha]


def test_commits_of_a_deleted_branch_may_go_since_it_was_missed(mirror: Mirror, main: Line) -> None:
    side = Line(mirror.source, "side", NOW)
    at_mirror(mirror, side.commit("S", ago=90, parents=main.commits[:1]), "checking", now=NOW)
    assert ids(mirror) == []
    missed = NOW - timedelta(seconds=20)
    for gone_at in (None, NOW):
        SourceBranch.objects.filter(name="side").update(missing_since=missed, gone_at=gone_at)
        [one] = unreached_of(mirror).commits
        assert (one.last.branch, one.last.why, one.last.since) == ("side", "deleted", missed)


def test_the_branch_that_was_left_last_is_named(mirror: Mirror, main: Line, left: list[Commit]) -> None:
    Line(mirror.source, "side", NOW).point_to(left[0], ago=80)
    SourceBranch.objects.filter(name="side").update(gone_at=NOW, missing_since=NOW)
    assert {one.sha: one.last.branch for one in unreached_of(mirror).commits} == {
        left[0].sha: "side",
        left[1].sha: "main",
    }


def test_only_so_many_moves_are_gone_through(mirror: Mirror, main: Line, left: list[Commit]) -> None:
    with mock.patch("mirrors.queries.gc_exposure.MOST_FORMER", 1):
        assert not unreached_of(mirror).at_least
        main.commit("E", ago=5, parents=main.commits[:1], forward=False)
        assert unreached_of(mirror).at_least


def test_what_is_gone_is_counted_once_and_its_heads_are_named(mirror: Mirror, main: Line) -> None:
    commit = main.commit("B", ago=90)
    for path in ("part-1", "part-2"):
        block(mirror, commit, path, now=NOW, ago=80, gone_at_source=True)
    block(mirror, commit, "part-3", now=NOW, ago=300)
    gone = gone_of(mirror)
    assert (gone.kinds, gone.since, gone.heads) == (
        {"object": 2},
        NOW - timedelta(seconds=80),
        [("main", commit.sha)],
    )
    assert [row.path for row in gone.examples] == ["part-1", "part-2"]


def test_nothing_is_gone(mirror: Mirror, main: Line) -> None:
    gone = gone_of(mirror)
    assert (gone.kinds, gone.since, gone.commits, gone.heads) == ({}, None, 0, [])


# --- the API ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def api(owner: User) -> Api:
    return Api(owner)


def test_both_are_told_in_pages(mirror: Mirror, main: Line, left: list[Commit], api: Api) -> None:
    status, told = api.call("GET", f"{SAFETY}?amount=1")
    assert (status, told["retention_days"], told["as_of"]) == (200, None, "2026-11-21T09:16:31.000Z")
    assert told["not_known"] == ["the garbage-collection rules of lake: not read yet"]
    assert (told["unreached"]["commits"], told["unreached"]["objects"], told["gone"]["objects"]) == (2, None, 0)
    assert told["results"] == [
        {
            "commit": left[1].sha,
            "data": "unknown",
            "seen_at": "2026-11-21T09:15:34.000Z",
            "branch": "main",
            "why": "moved",
            "since": "2026-11-21T09:16:04.000Z",
        }
    ]
    told = api.call("GET", f"{SAFETY}?amount=1&after={told['pagination']['next_offset']}")[1]
    assert ([row["commit"] for row in told["results"]], told["pagination"]["has_more"]) == ([left[0].sha], False)


def test_more_moves_cost_no_more_queries(mirror: Mirror, main: Line, left: list[Commit], api: Api) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as asked:
            assert api.call("GET", SAFETY)[0] == 200
        return len(asked)

    queries()
    before = queries()
    for _ in range(6):
        at_mirror(mirror, main.commit("X", ago=9, parents=main.commits[:1], forward=False), "checking", now=NOW)
    assert queries() == before


def test_gc_safety_needs_the_right_to_list(mirror: Mirror, outsider: User) -> None:
    assert Api(outsider).call("GET", SAFETY)[0] == 403


def test_the_rules_of_both_sides_are_told(mirror: Mirror, main: Line, api: Api) -> None:
    both = BothRules(RulesRead(GcRules(21, {"main": 28})), RulesRead(GcRules(7)))
    Mirror.objects.update(gc_rules=rules_json(both), gc_rules_at=NOW)
    told = api.call("GET", SAFETY)[1]
    assert (told["retention_days"], told["branch_retention_days"]) == (21, {"main": 28})
    assert (told["rules_read_at"], told["not_known"]) == ("2026-11-21T09:16:34.000Z", [])
    assert "has garbage-collection rules of its own (7 days" in told["warnings"][0]
    assert api.call("GET", SAFETY.removesuffix("/gc-safety"))[1]["warnings"] == told["warnings"]
    unread = rules_json(BothRules(RulesRead(GcRules(21)), RulesRead.of(Denied("no", hint="Let it"))))
    Mirror.objects.update(gc_rules=unread)
    told = api.call("GET", SAFETY)[1]
    assert told["warnings"] == [] and "could not be read: no" in told["not_known"][0]


@pytest.mark.django_db(transaction=True)
def test_an_object_that_was_collected_at_both_sides_is_told(lm: Deployment, api: Api) -> None:
    lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.work(1)
    commit = lm.lake.commit(files={"b": b"2"})
    address = lm.lake.address_of(commit, "b")
    lm.arrive(address)
    del lm.us_store.objects[f"{lm.lake.namespace}/{address}"]
    lm.work(2)
    gone = api.call("GET", SAFETY)[1]["gone"]
    assert (gone["objects"], gone["heads"]) == (1, [{"branch": "main", "commit": commit}])
    assert (gone["examples"][0]["path"], gone["examples"][0]["address"]) == ("b", address)
