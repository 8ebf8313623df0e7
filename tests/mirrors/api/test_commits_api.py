"""The branches and commits of a mirror, as programs ask for them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from adapters.disk_cache import LocalCache
from core.errors import Unreachable
from mirrors.models import Commit, Coverage, MetarangeCoverage, Mirror, MirrorCommit, Waiver
from mirrors.queries.metaranges import remembered
from rbac.models import User
from tests.api import BODY, MIRRORS, Api
from tests.mirrors.factories import Line, at_mirror, block, make_commit, make_mirror, make_repository
from tests.mirrors.harness import NAMESPACE, Deployment, deployment

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 21, 9, 16, 34, tzinfo=UTC)
MIRROR = f"{MIRRORS}/lake-eu"


@pytest.fixture
def mirror() -> Mirror:
    return make_mirror("lake-eu", make_repository("lake", now=NOW), now=NOW)


@pytest.fixture
def main(mirror: Mirror) -> Line:
    """main: A was passed by, B is the mirror's head, C lacks an object, D's record is being copied."""
    line = Line(mirror.source, "main", NOW)
    a, b = line.commit("A", ago=900), line.commit("B", ago=600)
    line.reached(mirror, b, ago=500)
    block(mirror, line.commit("C", ago=300), "orders/1.csv", now=NOW, ago=200)
    at_mirror(mirror, line.commit("D", ago=100), "copying", now=NOW)
    assert a.sha != b.sha
    return line


def asked(api: Api, path: str) -> Any:
    status, answer = api.call("GET", f"{MIRROR}/{path}")
    assert status == 200, answer
    return answer


def messages(api: Api, query: str = "") -> str:
    return "".join(row["message"] for row in asked(api, f"commits?{query}")["results"])


# --- branches -------------------------------------------------------------------------------------------------------


@pytest.fixture
def branches(mirror: Mirror, main: Line) -> None:
    for name in ("dev", "exp"):
        Line(mirror.source, name, NOW).point_to(main.commits[1], ago=400)


def test_branches_come_by_name_with_what_the_mirror_tells_of_them(api: Api, main: Line, branches: None) -> None:
    with mock.patch("db.clock.now", return_value=NOW):
        rows, told = asked(api, "branches")["results"], api.call("GET", MIRROR)[1]
    assert [row["name"] for row in rows] == ["dev", "exp", "main"]
    assert rows == told["branches"]


def test_branches_come_in_pages(api: Api, main: Line, branches: None) -> None:
    first = asked(api, "branches?amount=2")
    rest = asked(api, f"branches?amount=2&after={first['pagination']['next_offset']}")
    assert [[row["name"] for row in page["results"]] for page in (first, rest)] == [["dev", "exp"], ["main"]]
    assert (first["pagination"]["has_more"], rest["pagination"]["has_more"]) == (True, False)


@pytest.mark.parametrize("state", ["blocked", "Blocked"])
def test_branches_may_be_asked_for_by_state(api: Api, main: Line, state: str) -> None:
    with mock.patch("db.clock.now", return_value=NOW):
        assert [row["name"] for row in asked(api, f"branches?status={state}")["results"]] == ["main"]
        assert asked(api, "branches?status=up_to_date")["results"] == []
        assert asked(api, "branches?status=Up+to+date")["results"] == []
    status, answer = api.call("GET", f"{MIRROR}/branches?status=broken")
    assert (status, "not one of up_to_date, " in answer["message"]) == (400, True)


# --- commits --------------------------------------------------------------------------------------------------------


def test_commits_come_newest_first_each_with_its_ladder(api: Api, main: Line) -> None:
    rows = asked(api, "commits")["results"]
    assert [(row["message"], row["stage"]) for row in rows] == [
        ("D", "seen"),
        ("C", "metadata"),
        ("B", "promoted"),
        ("A", "superseded"),
    ]
    assert rows[2]["ladder"] == [
        {"step": "seen", "name": "Seen", "at": "2026-11-21T09:06:34.000Z"},
        {"step": "recorded", "name": "Record copied", "at": "2026-11-21T09:06:35.200Z"},
        {"step": "metadata", "name": "Metadata arrived", "at": "2026-11-21T09:06:37.800Z"},
        {"step": "validated", "name": "Objects validated", "at": "2026-11-21T09:06:39.100Z"},
        {"step": "promoted", "name": "Promoted", "at": "2026-11-21T09:08:14.000Z"},
    ]
    assert [step["at"] for step in rows[0]["ladder"]] == ["2026-11-21T09:14:54.000Z", None, None, None, None]
    assert rows[0]["parents"] == [rows[1]["id"]]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("stage=seen", "D"),
        ("stage=recorded", ""),
        ("stage=metadata", "C"),
        ("stage=validated", ""),
        ("stage=superseded", "A"),
        ("stage=promoted", "B"),
        ("data=complete", "BA"),
        ("data=waiting", "C"),
        ("data=waiting&stage=promoted", ""),
        ("branch=main&data=complete", "BA"),
    ],
)
def test_commits_may_be_asked_for_by_how_far_they_have_come(api: Api, main: Line, query: str, found: str) -> None:
    assert messages(api, query) == found


def test_the_stage_that_filters_is_the_stage_that_is_told(api: Api, main: Line) -> None:
    for row in asked(api, "commits")["results"]:
        assert row["id"] in [one["id"] for one in asked(api, f"commits?stage={row['stage']}")["results"]]


def test_a_branch_has_the_commits_that_it_pointed_to_in_that_order(api: Api, main: Line, mirror: Mirror) -> None:
    at_mirror(mirror, make_commit(mirror.source, "merged", parents=[], at=NOW), "complete", now=NOW)
    main.point_to(main.commits[0], ago=1, forward=False)
    assert messages(api, "branch=main") == "ADCBA"
    assert messages(api) == "mergedDCBA"
    first = asked(api, "commits?branch=main&amount=2")
    assert messages(api, f"branch=main&amount=9&after={first['pagination']['next_offset']}") == "CBA"


def test_commits_come_in_pages(api: Api, main: Line) -> None:
    first = asked(api, "commits?amount=3")
    assert messages(api, f"amount=3&after={first['pagination']['next_offset']}") == "A"


def test_a_waived_commit_says_so(api: Api, main: Line, mirror: Mirror) -> None:
    waiver = Waiver.objects.create(mirror=mirror, reason="lost", given_by="olga", given_at=NOW)
    mirror.commits.filter(commit=main.commits[0]).update(waiver=waiver)
    last = asked(api, "commits")["results"][-1]
    assert last["waived"] == {"given_by": "olga", "reason": "lost", "given_at": "2026-11-21T09:16:34.000Z"}
    assert last["promotable"] is False


@pytest.mark.parametrize("query", ["stage=done", "data=here", "amount=0", "after=x"])
def test_what_is_asked_wrongly_is_told(api: Api, main: Line, query: str) -> None:
    status, answer = api.call("GET", f"{MIRROR}/commits?{query}")
    assert (status, query.split("=")[0] in answer["message"]) == (400, True)


def test_a_branch_that_nobody_knows_is_not_found(api: Api, main: Line) -> None:
    assert api.call("GET", f"{MIRROR}/commits?branch=none")[0] == 404


@pytest.mark.parametrize("query", ["commits", "commits?branch=main", "branches"])
def test_the_number_of_queries_does_not_grow(api: Api, main: Line, mirror: Mirror, query: str) -> None:
    asked(api, query)
    with CaptureQueriesContext(connection) as few:
        asked(api, query)
    for number in range(30):
        at_mirror(mirror, main.commit(f"M{number}", ago=4), "checking", now=NOW)
        Line(mirror.source, f"b{number}", NOW).point_to(main.commits[1], ago=400)
    with CaptureQueriesContext(connection) as many:
        assert len(asked(api, query)["results"]) > 30
    assert len(many) == len(few)


def test_outsiders_see_nothing(outsider: User, main: Line) -> None:
    for path in ("branches", "commits", f"commits/{main.commits[0].sha}"):
        assert Api(outsider).call("GET", f"{MIRROR}/{path}")[0] == 403


# --- one commit -----------------------------------------------------------------------------------------------------


def test_a_commit_is_found_by_six_digits_and_no_fewer(api: Api, main: Line) -> None:
    sha = main.commits[2].sha
    for digits in (sha, sha[:6], sha[:20].upper()):
        assert asked(api, f"commits/{digits}")["id"] == sha
    status, answer = api.call("GET", f"{MIRROR}/commits/{sha[:5]}")
    assert (status, "too short" in answer["message"]) == (400, True)
    for unknown in ("0" * 64, "0" * 65, "nonsense", sha[:6] + "g"):
        assert api.call("GET", f"{MIRROR}/commits/{unknown}")[0] == 404


def test_digits_that_several_commits_begin_with_are_a_conflict_that_names_some(
    api: Api, main: Line, mirror: Mirror
) -> None:
    for number in range(5):
        commit = make_commit(mirror.source, "twin", parents=[], at=NOW)
        Commit.objects.filter(pk=commit.pk).update(sha=f"abcdef{number}" + "0" * 57)
        at_mirror(mirror, commit, "complete", now=NOW)
    status, answer = api.call("GET", f"{MIRROR}/commits/abcdef")
    assert status == 409
    assert answer["message"].count("abcdef") == 4
    assert "abcdef0000000000, abcdef1000000000, abcdef2000000000, …" in answer["message"]
    assert asked(api, "commits/abcdef3")["stage"] == "validated"


def test_another_mirrors_commits_are_not_this_ones(api: Api, main: Line, mirror: Mirror) -> None:
    only_there = make_commit(mirror.source, "unselected here", parents=[], at=NOW)
    assert api.call("GET", f"{MIRROR}/commits/{only_there.sha}")[0] == 404


def test_a_commit_whose_metadata_has_not_arrived_has_no_coverage(api: Api, main: Line) -> None:
    told = asked(api, f"commits/{main.commits[3].sha}")
    assert (told["coverage"], told["stage"], told["blockers"], told["blockers_total"]) == (None, "seen", [], 0)


@pytest.fixture
def lm(transactional_db: None, api: Api) -> Iterator[Deployment]:
    with deployment() as made:
        assert api.call("POST", MIRRORS, BODY)[0] == 201
        yield made


def complete(lm: Deployment, **files: bytes) -> str:
    commit = lm.lake.commit(files=dict(files))
    lm.arrive()
    lm.work()
    assert lm.head() == commit
    return commit


def test_a_commit_tells_what_of_it_is_covered_how_deep_and_since_when(api: Api, lm: Deployment) -> None:
    commit = complete(lm, a=b"1", b=b"22")
    checked = Coverage.objects.get().checked_at
    with mock.patch("db.clock.now", return_value=checked + timedelta(seconds=90)):
        told = asked(api, f"commits/{commit[:8]}")
    checked_at = told["coverage"].pop("oldest_check_at")
    assert checked_at == told["coverage"].pop("latest_check_at")
    assert told["coverage"] == {
        "ranges": 1,
        "entries": 2,
        "covered_ranges": 1,
        "covered_entries": 2,
        "covered_bytes": 3,
        "depth": "etag",
        "oldest_check_age_seconds": 90.0,
    }
    assert (told["stage"], told["promotable"], told["blockers"]) == ("promoted", True, [])
    root = Commit.objects.get(metarange_id="")
    assert asked(api, f"commits/{root.sha}")["coverage"]["ranges"] == 0


def test_what_proves_nothing_any_more_covers_nothing(api: Api, lm: Deployment) -> None:
    commit = complete(lm, a=b"1")
    Coverage.objects.update(depth="")
    coverage = asked(api, f"commits/{commit}")["coverage"]
    assert (coverage["ranges"], coverage["covered_ranges"], coverage["depth"]) == (1, 0, None)
    assert coverage["oldest_check_age_seconds"] is None


def test_coverage_is_unknown_while_the_metarange_can_not_be_read(api: Api, lm: Deployment) -> None:
    commit = complete(lm, a=b"1")
    metarange = Commit.objects.get(sha=commit).metarange_id
    with mock.patch.object(lm.eu_store, "get", side_effect=Unreachable("no answer")):
        assert asked(api, f"commits/{commit}")["coverage"]["ranges"] == 1
        remembered().clear()
        assert asked(api, f"commits/{commit}")["coverage"]["ranges"] == 1
        remembered().clear()
        with mock.patch.object(lm.local_cache, "get", return_value=None):
            told = asked(api, f"commits/{commit}")
    assert (told["coverage"], told["metarange"]) == (None, metarange)
    assert MirrorCommit.objects.get(commit__sha=commit).data == "complete"


# --- its certificate ------------------------------------------------------------------------------------------------


def test_a_validated_commit_has_the_certificate_that_lies_at_the_destination(api: Api, lm: Deployment) -> None:
    commit = complete(lm, a=b"1", b=b"22")
    status, told = api.call("GET", f"{MIRROR}/commits/{commit[:8]}/certificate")
    written = json.loads(lm.eu_store.objects[f"{NAMESPACE}/_lakemirror/certificates/main.json"])
    assert status == 200
    assert told.pop("as_of").endswith("Z")
    assert told == {name: written[name] for name in told}
    assert {"digest", "content_digest", "commit", "metarange", "ranges", "entries", "bytes", "depth"} <= told.keys()


def refusal(api: Api, commit: str) -> str:
    status, answer = api.call("GET", f"{MIRROR}/commits/{commit}/certificate")
    assert status == 404
    return str(answer["message"])


def test_a_commit_that_is_not_validated_has_none_and_it_says_why(api: Api, lm: Deployment) -> None:
    commit = lm.lake.commit(files={"a": b"1"})
    lm.arrive(lm.lake.address_of(commit, "a"))
    lm.work()
    missing = "1 object of it is missing or wrong (1 of 1 ranges"
    assert f"is not validated at 'lake-eu': {missing}" in refusal(api, commit)
    child = lm.lake.commit(files={"a": b"2"})
    lm.arrive(lm.lake.address_of(commit, "a"))
    lm.work()
    assert "a commit that it descends from is incomplete" in refusal(api, child)
    MirrorCommit.objects.filter(commit__sha=child).update(record="refused")
    assert "its record is refused" in refusal(api, child)
    assert "no known commit" in refusal(api, "0" * 64)


def test_what_was_proven_less_deep_than_is_asked_now_has_none(api: Api, lm: Deployment, tmp_path: Path) -> None:
    commit = complete(lm, a=b"1")
    Mirror.objects.update(depth="content")
    assert "0 of its 1 ranges are validated" in refusal(api, commit)
    del lm.eu_store.objects[f"{NAMESPACE}/_lakefs/{Commit.objects.get(sha=commit).metarange_id}"]
    remembered().clear()
    lm.local_cache = LocalCache(tmp_path, 1_000_000)
    assert "its metarange has not been read" in refusal(api, commit)
    MetarangeCoverage.objects.update(state="waiting")
    assert "its metarange is waiting" in refusal(api, commit)
    MetarangeCoverage.objects.all().delete()
    assert "its metarange is unknown" in refusal(api, commit)


def test_outsiders_get_no_certificate(outsider: User, main: Line) -> None:
    assert Api(outsider).call("GET", f"{MIRROR}/commits/{main.commits[0].sha}/certificate")[0] == 403
