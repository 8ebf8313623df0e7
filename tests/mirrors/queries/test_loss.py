"""If the source failed now: what of it is at no branch of the mirror?"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from unittest import mock

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.errors import Denied
from mirrors.models import Mirror, Repository
from mirrors.queries import unreplicated
from mirrors.queries.unreplicated import Losses, losses_of
from rbac.models import User
from tests.api import Api
from tests.mirroring.test_found_by_breaking import age, lose, mirrored
from tests.mirrors.factories import Line, at_mirror, block, make_commit, make_mirror, make_repository
from tests.mirrors.harness import Deployment
from tests.mirrors.promise import real_job

NOW = datetime(2026, 11, 21, 9, 16, 34, tzinfo=UTC)
LOSS = "/service/replication/v1/repositories/lake/mirrors/lake-eu/loss"

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


def lost(mirror: Mirror, after: str = "", amount: int = 100) -> Losses:
    return losses_of(mirror, after, amount)


def by_branch(found: Losses) -> dict[str, int]:
    return {place.key[1]: one.tally.commits for place, one in found.branches}


def test_nothing_would_be_lost_of_what_the_mirror_shows(mirror: Mirror, main: Line) -> None:
    found = lost(mirror)
    assert (found.together.tally.commits, found.branches, found.behind) == (0, [], 0)
    assert (found.together.missing.objects, found.together.missing.bytes, found.together.at_least) == (0, 0, False)


def test_commits_are_counted_with_their_authors_and_the_oldest_sight(mirror: Mirror, main: Line) -> None:
    for who, ago in (("ada", 90), ("bob", 60), ("ada", 30)):
        at_mirror(mirror, main.commit("B", ago=ago, committer=who), "checking", now=NOW)
    tally = lost(mirror).together.tally
    assert (tally.commits, dict(tally.authors), tally.oldest) == (3, {"ada": 2, "bob": 1}, main.commits[1].seen_at)


def test_what_was_merged_counts_although_no_branch_pointed_to_it(mirror: Mirror, main: Line) -> None:
    side = make_commit(mirror.source, "side", parents=main.commits[:1], at=NOW, by="bob")
    main.commit("merge", ago=5, parents=[main.commits[0], side])
    assert lost(mirror).together.tally.commits == 2


def test_branches_share_commits_and_together_each_counts_once(mirror: Mirror, main: Line) -> None:
    main.commit("B", ago=90)
    side = Line(mirror.source, "side", NOW)
    side.commit("C", ago=30, parents=[main.commits[-1]])
    found = lost(mirror)
    assert (by_branch(found), found.together.tally.commits) == ({"main": 1, "side": 2}, 2)
    found = lost(mirror, after="main", amount=1)
    assert (by_branch(found), found.together.tally.commits, found.behind) == ({"side": 2}, 2, 2)


def test_a_new_branch_at_a_commit_that_the_mirror_shows_loses_no_commit(mirror: Mirror, main: Line) -> None:
    Line(mirror.source, "side", NOW).point_to(main.commits[0], ago=5)
    assert by_branch(lost(mirror)) == {"side": 0}


def test_objects_that_have_not_arrived_are_counted_once(mirror: Mirror, main: Line) -> None:
    for _ in range(2):
        commit = main.commit("B", ago=60)
        [holder] = [block(mirror, commit, "part-1", now=NOW, ago=50, size=20).holder_id]
        block(mirror, commit, "part-2", now=NOW, ago=50, size=5)
        assert mirror.coverage.filter(range_id=holder, state="waiting").update(problems=2) == 1
    missing = lost(mirror).together.missing
    assert (missing.objects, missing.bytes, missing.unchecked, missing.at_least) == (2, 25, 0, False)
    mirror.coverage.update(problems=5000)
    assert lost(mirror).together.at_least, "not all of them are kept by name"


def test_what_is_gone_at_the_source_is_not_lost_by_its_failure(mirror: Mirror, main: Line) -> None:
    commit = main.commit("B", ago=60)
    holder = block(mirror, commit, "part-1", now=NOW, ago=50, gone_at_source=True).holder_id
    assert mirror.coverage.filter(range_id=holder, state="waiting").update(problems=1) == 1
    assert lost(mirror).together.missing.objects == 0


@pytest.mark.parametrize("kind", ["range", "metarange", "nothing"])
def test_objects_are_unknown_until_the_commit_was_looked_through(mirror: Mirror, main: Line, kind: str) -> None:
    commit = main.commit("B", ago=60)
    if kind == "nothing":
        at_mirror(mirror, commit, "checking", now=NOW)
    else:
        block(mirror, commit, "x", kind=kind, now=NOW, ago=50)
    missing = lost(mirror).together.missing
    assert (missing.objects, missing.bytes, missing.unchecked) == (None, None, 1)


def test_of_a_long_history_a_part_is_counted(mirror: Mirror, main: Line) -> None:
    for _ in range(30):
        main.commit("B", ago=60)
    with mock.patch.multiple(unreplicated, MOST_ROWS=10, FIRST_WINDOW=5, LAST_WINDOW=5):
        found = lost(mirror)
    assert (found.together.tally.commits, found.together.at_least) == (10, True)
    assert lost(mirror).together.tally.commits == 30


def test_what_lies_between_is_passed_over(mirror: Mirror, main: Line) -> None:
    """A branch far behind, beside a thousand commits that the mirror has."""
    old = Line(mirror.source, "old", NOW)
    old.commit("B", ago=500, parents=main.commits[:1])
    for _ in range(40):
        main.commit("C", ago=60)
    mirror.branches.filter(name="main").delete()
    main.reached(mirror, main.commits[-1])
    with mock.patch.multiple(unreplicated, MOST_ROWS=10, FIRST_WINDOW=2, LAST_WINDOW=2):
        assert lost(mirror).together.at_least
    with mock.patch.multiple(unreplicated, FIRST_WINDOW=2, LAST_WINDOW=2):
        assert by_branch(lost(mirror)) == {"old": 1}


def test_commits_of_branches_that_the_last_look_did_not_find_are_told_apart(mirror: Mirror, main: Line) -> None:
    main.commit("B", ago=90)
    side = Line(mirror.source, "side", NOW)
    side.commit("C", ago=30, parents=[main.commits[-1]])
    assert lost(mirror).leaving == 0
    mirror.source.branches.filter(name="side").update(missing_since=NOW)
    found = lost(mirror)
    assert (found.together.tally.commits, found.leaving) == (2, 1)


# --- the API ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def api(owner: User) -> Api:
    return Api(owner)


def test_the_loss_is_told_as_of_the_last_look(api: Api, mirror: Mirror, main: Line) -> None:
    at_mirror(mirror, main.commit("B", ago=60, committer="ada"), "complete", now=NOW)
    status, told = api.call("GET", LOSS)
    assert (status, told["as_of"], told["branches_behind"]) == (200, "2026-11-21T09:16:31.000Z", 1)
    assert told["unseen_seconds"] > 0
    assert "2026-11-21T09:16:31.000Z" in told["not_counted"][0]
    whole: dict[str, Any] = {
        "commits": 1,
        "at_least": False,
        "objects": 0,
        "bytes": 0,
        "unchecked_commits": 0,
        "oldest_seen_at": "2026-11-21T09:15:34.000Z",
        "authors": [{"committer": "ada", "commits": 1}],
        "more_authors": 0,
    }
    assert told["together"] == whole
    heads = {"source_head": main.commits[1].sha, "mirror_head": main.commits[0].sha}
    assert told["results"] == [{"branch": "main", **heads, **whole}]


def test_of_a_source_that_was_not_looked_at_nothing_is_known(api: Api, mirror: Mirror) -> None:
    Repository.objects.update(looked_at=None)
    told = api.call("GET", LOSS)[1]
    assert (told["as_of"], told["unseen_seconds"], told["together"], told["branches_behind"]) == (None,) * 4


def test_the_branches_come_in_pages(api: Api, mirror: Mirror, main: Line) -> None:
    for name in ("a", "b", "c"):
        Line(mirror.source, name, NOW).commit("B", ago=60, parents=main.commits[:1])
    told = api.call("GET", f"{LOSS}?amount=2")[1]
    assert ([row["branch"] for row in told["results"]], told["together"]["commits"]) == (["a", "b"], 3)
    told = api.call("GET", f"{LOSS}?amount=2&after={told['pagination']['next_offset']}")[1]
    assert ([row["branch"] for row in told["results"]], told["pagination"]["has_more"]) == (["c"], False)


def test_more_branches_and_commits_cost_no_more_queries(api: Api, mirror: Mirror, main: Line) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as asked:
            assert api.call("GET", LOSS)[0] == 200
        return len(asked)

    block(mirror, main.commit("B", ago=60), "part-1", now=NOW, ago=50)
    queries()
    before = queries()
    for n in range(6):
        line = Line(mirror.source, f"b{n}", NOW)
        for _ in range(4):
            block(mirror, line.commit("B", ago=60, parents=line.commits[-1:] or main.commits[:1]), "x", now=NOW, ago=9)
    assert queries() == before


def test_the_loss_needs_the_right_to_list(mirror: Mirror, outsider: User) -> None:
    assert Api(outsider).call("GET", LOSS)[0] == 403


@pytest.mark.django_db(transaction=True)
def test_an_object_that_is_held_back_would_be_lost(lm: Deployment, api: Api) -> None:
    lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.work()
    commit = lm.lake.commit(files={"b": b"four", "c": b"5"})
    lm.arrive(lm.lake.address_of(commit, "b"))
    lm.work()
    told = api.call("GET", LOSS)[1]["together"]
    assert (told["commits"], told["objects"], told["bytes"]) == (1, 1, 4)
    lm.arrive()
    lm.work()
    assert api.call("GET", LOSS)[1]["together"]["commits"] == 0


@pytest.mark.django_db(transaction=True)
def test_138_a_damaged_head_is_told_although_no_commit_would_be_lost(lm: Deployment, api: Api) -> None:
    head = mirrored(lm, a=b"1")
    with real_job(lm):
        lose(lm, head, "a")
        age(head, lm=lm)
        lm.work(2)
    found = losses_of(Mirror.objects.get(), "", 10)
    assert (found.together.tally.commits, found.unproven) == (0, 1)
    assert any("1 branch" in told for told in api.call("GET", LOSS)[1]["not_counted"])


@pytest.mark.django_db(transaction=True)
def test_138_what_somebody_put_a_branch_at_is_not_kept_by_it(lm: Deployment) -> None:
    head = mirrored(lm, a=b"1")
    lm.lake.repository.branches["dev"] = head
    lm.work(2)
    new = lm.lake.commit("main", {"n": b"new"})
    lm.arrive(lm.lake.address_of(new, "n"))
    lm.work(3)
    lm.eu.repositories["lake-eu"].branches["dev"] = new
    lm.eu.failing["hard_reset_branch"] = Denied("protected")
    lm.work(3)
    loss = losses_of(Mirror.objects.get(), "", 10).together
    assert (loss.tally.commits, loss.missing.objects) == (1, 1)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("damaged", [False, True])
def test_144_a_damaged_head_is_told_also_if_somebody_deleted_its_branch(lm: Deployment, damaged: bool) -> None:
    lm.lake.repository.branches["dev"] = mirrored(lm, a=b"1")
    head = mirrored(lm, "dev", b=b"2")
    with real_job(lm):
        if damaged:
            lose(lm, head, "b")
            age(head, lm=lm)
            lm.work(2)
        del lm.eu.repositories["lake-eu"].branches["dev"]
        lm.eu.failing["create_branch"] = Denied("protected")
        lm.work(3)
    found = losses_of(Mirror.objects.get(), "", 10)
    assert (found.together.tally.commits, found.unproven) == (0, int(damaged))
