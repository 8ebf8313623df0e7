"""Questions about all mirrors at once: which there are, and which regions can read a commit."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from unittest import mock

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from graveler.metarange import RangeRef
from mirrors.api import everywhere
from mirrors.models import Blocker, Commit, Coverage, MetarangeCoverage, Mirror, MirrorCommit, Repository
from rbac.models import User
from tests.api import Api
from tests.mirrors.factories import (
    Line,
    at_mirror,
    block,
    make_company,
    make_id,
    make_mirror,
    make_repository,
    range_of,
)

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 21, 9, 16, 34, tzinfo=UTC)
BASE = "/service/replication/v1"


@pytest.fixture(autouse=True)
def at_nine() -> Iterator[None]:
    with mock.patch("db.clock.now", return_value=NOW):
        yield


@pytest.fixture
def api(owner: User) -> Api:
    return Api(owner)


# --- all mirrors ----------------------------------------------------------------------------------------------------


@pytest.fixture
def company() -> dict[str, Mirror]:
    return make_company(NOW)


def asked(api: Api, path: str) -> Any:
    status, answer = api.call("GET", f"{BASE}/{path}")
    assert status == 200, answer
    return answer


def names(api: Api, query: str = "") -> list[str]:
    return [row["id"] for row in asked(api, f"mirrors?{query}")["results"]]


def test_all_mirrors_come_by_name_as_each_answers_for_itself(api: Api, company: dict[str, Mirror]) -> None:
    assert names(api) == sorted(company)
    rows = {row["id"]: row for row in asked(api, "mirrors")["results"]}
    for name in ("analytics-eu", "billing-us"):
        source = company[name].source
        query = f"?source_region={source.region}"
        assert api.call("GET", f"{BASE}/repositories/{source.name}/mirrors/{name}{query}")[1] == rows[name]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("region=us-east-1", ["billing-us"]),
        ("source=models", ["models-eu"]),
        ("status=Stopped", ["archive-eu"]),
        ("status=stopped&region=us-east-1", []),
        ("status=paused", ["billing-us"]),
        ("region=mars", []),
    ],
)
def test_mirrors_may_be_asked_for_by_state_region_and_source(
    api: Api, company: dict[str, Mirror], query: str, found: list[str]
) -> None:
    assert names(api, query) == found


def test_mirrors_come_in_pages_also_those_in_a_state(api: Api, company: dict[str, Mirror]) -> None:
    for query in ("", "&status=up_to_date"):
        expected, found, after = names(api, query), list[str](), ""
        with mock.patch.object(everywhere, "BATCH", 2):
            while True:
                page = asked(api, f"mirrors?amount=1&after={after}{query}")
                found += [row["id"] for row in page["results"]]
                after = page["pagination"]["next_offset"]
                if not after:
                    break
        assert (found, bool(found)) == (expected, True)


def test_a_mirror_that_is_being_deleted_is_not_shown(api: Api, company: dict[str, Mirror]) -> None:
    Mirror.objects.filter(name="models-eu").update(state="deleting")
    assert "models-eu" not in names(api)


def test_an_unknown_state_is_told(api: Api) -> None:
    status, answer = api.call("GET", f"{BASE}/mirrors?status=broken")
    assert (status, answer["message"].startswith("status: ")) == (400, True)


def test_outsiders_see_nothing(outsider: User, company: dict[str, Mirror]) -> None:
    assert Api(outsider).call("GET", f"{BASE}/mirrors")[0] == 403
    assert Api(outsider).call("GET", f"{BASE}/commits/{Commit.objects.all()[0].sha}/regions")[0] == 403


# --- regions --------------------------------------------------------------------------------------------------------


@pytest.fixture
def lake() -> Repository:
    return make_repository("lake", now=NOW)


@pytest.fixture
def main(lake: Repository) -> Line:
    """Two commits; eu has promoted the first and lacks something of the second, ap has none."""
    eu = make_mirror("lake-eu", lake, now=NOW)
    make_mirror("lake-ap", lake, region="ap-southeast-2", now=NOW)
    line = Line(lake, "main", NOW)
    line.reached(eu, line.commit("A", ago=600), ago=500)
    block(eu, line.commit("B", ago=60), "b", now=NOW, ago=50)
    return line


def regions(api: Api, commit: str) -> dict[str, tuple[bool | None, str | None, str | None]]:
    rows = asked(api, f"commits/{commit}/regions")["results"]
    return {f"{row['region']}/{row['repository']}": (row["readable"], row["since"], row["reason"]) for row in rows}


def test_each_region_says_whether_it_can_read_the_commit_and_since_when(api: Api, main: Line) -> None:
    a, b = main.commits
    assert regions(api, a.sha) == {
        "ap-southeast-2/lake-ap": (None, None, "it is not mirrored there"),
        "eu-west-1/lake-eu": (True, "2026-11-21T09:08:14.000Z", None),
        "us-east-1/lake": (True, "2026-11-21T09:06:34.000Z", None),
    }
    missing = "1 object of it is missing or wrong"
    assert regions(api, b.sha[:6])["eu-west-1/lake-eu"] == (False, None, missing)


def test_what_the_rows_do_not_prove_is_not_known(api: Api, main: Line) -> None:
    a = main.commits[0]
    Coverage.objects.filter(range_id=range_of(a)).update(depth="")
    assert regions(api, a.sha)["eu-west-1/lake-eu"] == (None, None, "0 of its 1 ranges are validated")
    MetarangeCoverage.objects.filter(metarange_id=a.metarange_id).delete()
    assert regions(api, a.sha)["eu-west-1/lake-eu"] == (None, None, "its metarange is unknown")


def test_a_place_is_told_with_its_role_and_the_last_look_at_it(api: Api, main: Line) -> None:
    answer = asked(api, f"commits/{main.commits[0].sha[:9]}/regions")
    assert answer["commit"] == main.commits[0].sha
    assert answer["results"][1] == {
        "region": "eu-west-1",
        "repository": "lake-eu",
        "role": "mirror",
        "readable": True,
        "since": "2026-11-21T09:08:14.000Z",
        "reason": None,
        "as_of": "2026-11-21T09:16:29.000Z",
    }


def test_what_a_mirror_found_gone_at_both_sides_the_source_can_not_read_either(api: Api, main: Line) -> None:
    eu = Mirror.objects.get(name="lake-eu")
    block(eu, main.commits[0], "a", now=NOW, ago=5, gone_at_source=True)
    MirrorCommit.objects.filter(commit=main.commits[0]).update(data="gone")
    found = regions(api, main.commits[0].sha)
    assert found["us-east-1/lake"][0] is False
    assert found["eu-west-1/lake-eu"][0] is False


@pytest.mark.parametrize(("named", "answer"), [("damaged", False), ("another", True), (None, None)])
def test_damage_counts_where_the_commit_needs_what_is_damaged(
    api: Api, main: Line, named: str | None, answer: bool | None
) -> None:
    eu = Mirror.objects.get(name="lake-eu")
    block(eu, main.commits[1], "x", now=NOW, ago=5, damage=True)
    Blocker.objects.filter(damage=True).update(holder_id=make_id("damaged"))
    Coverage.objects.filter(range_id=range_of(main.commits[0])).update(range_id=make_id("another"))
    refs = None if named is None else (RangeRef(make_id(named), b"a", b"b", 1, 1),)
    with mock.patch("mirrors.queries.proof_facts.ranges_named", return_value=refs):
        assert regions(api, main.commits[0].sha)["eu-west-1/lake-eu"][0] is answer


def test_a_mirror_that_is_a_source_too_stands_there_once(api: Api, main: Line) -> None:
    eu = make_repository("lake-eu", region="eu-west-1", now=NOW)
    us2 = make_mirror("lake-back", eu, region="us-east-1", now=NOW)
    copy = Commit.objects.get(pk=main.commits[0].pk)
    copy.pk, copy.repository = None, eu
    copy.save()
    at_mirror(us2, copy, "complete", now=NOW)
    assert [place for place, (readable, _, _) in regions(api, copy.sha).items() if readable] == [
        "eu-west-1/lake-eu",
        "us-east-1/lake",
        "us-east-1/lake-back",
    ]


def test_other_sources_and_their_mirrors_are_left_out(api: Api, main: Line) -> None:
    make_mirror("other-eu", make_repository("other", now=NOW), now=NOW)
    assert "eu-west-1/other-eu" not in regions(api, main.commits[0].sha)


def test_digits_that_fit_commits_of_several_sources_are_a_conflict(api: Api, main: Line) -> None:
    other = make_repository("other", now=NOW)
    make_mirror("other-eu", other, now=NOW)
    commit = Line(other, "main", NOW).commit("x", ago=5)
    Commit.objects.filter(pk=commit.pk).update(sha=main.commits[0].sha[:10] + "f" * 54)
    status, answer = api.call("GET", f"{BASE}/commits/{main.commits[0].sha[:8]}/regions")
    assert (status, "several commits begin with" in answer["message"]) == (409, True)
    assert regions(api, main.commits[0].sha)


def test_a_commit_that_nobody_knows_is_not_found(api: Api, main: Line) -> None:
    assert api.call("GET", f"{BASE}/commits/{'0' * 64}/regions")[0] == 404
    assert api.call("GET", f"{BASE}/commits/0000/regions")[0] == 400


def test_places_come_in_pages(api: Api, main: Line) -> None:
    path = f"commits/{main.commits[0].sha}/regions?amount=2"
    first = asked(api, path)
    rest = asked(api, f"{path}&after={first['pagination']['next_offset']}")
    assert [row["region"] for row in first["results"] + rest["results"]] == ["ap-southeast-2", "eu-west-1", "us-east-1"]


def test_the_number_of_queries_does_not_grow_with_mirrors(api: Api, main: Line, lake: Repository) -> None:
    sha = main.commits[0].sha
    regions(api, sha)
    with CaptureQueriesContext(connection) as few:
        regions(api, sha)
    for number in range(20):
        made = make_mirror(f"more-{number}", lake, now=NOW)
        at_mirror(made, main.commits[0], "complete", now=NOW)
    with CaptureQueriesContext(connection) as many:
        assert len(regions(api, sha)) == 23
    assert len(many) == len(few)
