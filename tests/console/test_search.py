"""One text looked for among everything: the page and the API."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from unittest import mock
from urllib.parse import quote

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from console.search import find
from console.search.find import named_commits
from mirrors.models import Blocker, Commit, Mirror, SourceBranch
from rbac.models import User
from tests.api import Api
from tests.exports.test_pages import an_export
from tests.mirrors.factories import Line, at_mirror, block, make_commit, make_company, make_mirror, make_repository
from tests.mirrors.harness import Deployment
from tests.mirrors.page_text import text

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 21, 9, 16, 34, tzinfo=UTC)
ORDERS = "orders/day=2026-11-20/part-00017.parquet"


@pytest.fixture(autouse=True)
def at_nine() -> Iterator[None]:
    with mock.patch("db.clock.now", return_value=NOW):
        yield


@pytest.fixture
def company() -> dict[str, Mirror]:
    return make_company(NOW)


def found(api: Api, q: str) -> Any:
    status, answer = api.call("GET", f"/service/replication/v1/search?q={quote(q)}")
    assert status == 200, answer
    return answer


def ids(api: Api, q: str, kind: str) -> list[Any]:
    rows = found(api, q)[kind]["results"]
    return [row.get("id") or row.get("mirror") or row["name"] for row in rows]


def look(client: Client, q: str, **more: Any) -> Any:
    return client.get("/search/", {"q": q}, **more)


# What is found


def test_names_are_found_by_a_part_whatever_the_case(api: Api, company: dict[str, Mirror]) -> None:
    assert ids(api, "LYTIC", "repositories") == ["analytics"]
    assert ids(api, "LYTIC", "mirrors") == ["analytics-eu"]
    assert ids(api, "BACKf", "branches") == ["backfill/2024-q4"]
    (branch,) = found(api, "rollback")["branches"]["results"]
    assert (branch["source_repository"], branch["mirrors"]) == ("analytics", ["analytics-eu"])


def test_a_commit_is_found_by_six_digits_with_the_mirrors_that_know_it(api: Api, company: dict[str, Mirror]) -> None:
    row = company["models-eu"].commits.select_related("commit").first()
    assert row is not None
    other = make_mirror("models-ap", company["models-eu"].source, region="ap-southeast-2", now=NOW)
    at_mirror(other, row.commit, "complete", now=NOW)
    (hit,) = found(api, row.commit.sha[:6].upper())["commits"]["results"]
    assert (hit["id"], hit["mirrors"], hit["message"]) == (row.commit.sha, ["models-ap", "models-eu"], "one")
    assert ids(api, row.commit.sha[:5], "commits") == []


def test_a_path_or_its_beginning_tells_which_mirrors_miss_it(api: Api, company: dict[str, Mirror]) -> None:
    assert ids(api, ORDERS, "missing") == ["analytics-eu"]
    (hit,) = found(api, "orders/day=")["missing"]["results"]
    assert (hit["mirror"], hit["blockers"], hit["example"]) == ("analytics-eu", 3, ORDERS)
    assert sorted(ids(api, "orders/", "missing")) == ["analytics-eu", "orders-eu"]
    assert ids(api, "Orders/", "missing") == []
    assert ids(api, "part-00017", "missing") == ["analytics-eu"]
    (hit,) = found(api, "day=2026")["missing"]["results"]
    assert (hit["mirror"], hit["blockers"]) == ("analytics-eu", 3)


def test_a_commit_is_found_by_its_message_and_by_its_metarange(api: Api, company: dict[str, Mirror]) -> None:
    row = company["models-eu"].commits.select_related("commit").first()
    assert row is not None
    Commit.objects.filter(pk=row.commit_id).update(message="Backfill of the Orders table", metarange_id="ab12cd" * 10)
    (hit,) = found(api, "the orders tab")["commits"]["results"]
    assert (hit["id"], hit["found_by"]) == (row.commit.sha, "message")
    (hit,) = found(api, "AB12CDab")["commits"]["results"]
    assert (hit["id"], hit["found_by"], hit["metarange_id"][:6]) == (row.commit.sha, "metarange", "ab12cd")


def test_regions_and_users_are_found_by_who_may_list_them(
    api: Api, olga: Client, teammate: User, lm: Deployment
) -> None:
    assert ids(api, "EU-WEST", "regions") == ["eu-west-1"]
    assert ids(api, "olg", "users") == ["olga"]
    page = look(olga, "eu-west").content.decode()
    assert 'href="/installations/eu-west-1/"' in page
    hidden = found(Api(teammate), "olg")
    assert hidden["users"]["results"] == []


def test_what_is_gone_is_not_found(api: Api, company: dict[str, Mirror]) -> None:
    SourceBranch.objects.filter(name="rollback-test").update(gone_at=NOW)
    assert ids(api, "rollback-test", "branches") == []
    Mirror.objects.update(state="deleting")
    sha = Commit.objects.values_list("sha", flat=True)[0]
    assert all(not ids(api, q, kind) for q, kind in (("lab", "repositories"), ("lab", "mirrors"), (sha, "commits")))


def test_who_may_see_nothing_finds_nothing(outsider: User, client: Client, company: dict[str, Mirror]) -> None:
    assert Api(outsider).call("GET", "/service/replication/v1/search?q=lab")[0] == 403
    client.force_login(outsider)
    assert look(client, "lab").status_code == 403
    assert find.search(Mirror.objects.visible_to(outsider), "lab", outsider).number == 0


# A whole id


def test_a_whole_id_leads_to_its_page(olga: Client, company: dict[str, Mirror]) -> None:
    sha = company["models-eu"].commits.values_list("commit__sha", flat=True)[0]
    assert look(olga, sha)["Location"] == f"/commits/{sha}/"
    assert look(olga, f" {sha.upper()} ")["Location"] == f"/commits/{sha}/"
    assert look(olga, "models-eu")["Location"] == "/mirrors/models-eu/"
    part = look(olga, sha[:63])
    assert part.status_code == 200 and f"/mirrors/models-eu/commits/{sha}/" in part.content.decode()


def test_a_whole_id_at_two_mirrors_leads_to_all_of_them(olga: Client, company: dict[str, Mirror]) -> None:
    row = company["models-eu"].commits.select_related("commit")[0]
    at_mirror(make_mirror("models-ap", company["models-eu"].source, now=NOW), row.commit, "complete", now=NOW)
    assert "at models-ap models-eu" in text(look(olga, row.commit.sha[:20]))
    page = olga.get(look(olga, row.commit.sha)["Location"])
    said = text(page)
    assert "models-ap" in said and "models-eu" in said and "models, source" in said and "None" not in said


# A commit wherever it is


def test_the_page_of_a_commit_tells_where_it_is_readable_and_what_it_waits_for(
    olga: Client, company: dict[str, Mirror]
) -> None:
    commit = company["analytics-eu"].commits.select_related("commit").filter(data="waiting").order_by("pk").first()
    assert commit is not None
    page = olga.get(f"/commits/{commit.commit.sha}/")
    said = text(page)
    assert "Readable in" in said and "eu-west-1" in said and "us-east-1" in said
    places = {row.place.role: row for row in page.context["places"]}
    assert (places["source"].place.readable.answer, places["mirror"].place.readable.answer) == (True, False)
    assert str(places["mirror"].explanation) in said and "None" not in said
    assert olga.get(f"/commits/{commit.commit.sha[:8]}/")["Location"] == f"/commits/{commit.commit.sha}/"
    assert olga.get(f"/commits/{'0' * 64}/").status_code == 404


def test_the_page_of_a_commit_names_exports_that_hold_it_also_without_a_mirror(olga: Client, teammate: User) -> None:
    export = an_export(state="exported-successfully", last_success_ref="ab" * 32, succeeded_at=NOW)
    said = text(olga.get(f"/commits/{'ab' * 32}/"))
    assert "No mirror has this commit." in said and f"analytics · main {export.path}" in said


def test_the_number_of_queries_stays_with_mirrors(olga: Client, company: dict[str, Mirror]) -> None:
    row = company["models-eu"].commits.select_related("commit")[0]

    def asked() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert olga.get(f"/commits/{row.commit.sha}/").status_code == 200
        return len(captured)

    at_mirror(make_mirror("models-a", company["models-eu"].source, now=NOW), row.commit, "complete", now=NOW)
    few = asked()
    for number in range(5):
        made = make_mirror(f"models-b{number}", company["models-eu"].source, region="ap-southeast-2", now=NOW)
        at_mirror(made, row.commit, "complete", now=NOW)
    assert asked() <= few


def test_a_name_that_others_hold_too_leaves_the_choice(olga: Client, company: dict[str, Mirror]) -> None:
    make_mirror("models-eu-2", company["models-eu"].source, region="ap-southeast-2", now=NOW)
    assert look(olga, "models-eu").status_code == 200


# The page


def test_the_page_groups_what_it_found_by_kind(olga: Client, company: dict[str, Mirror]) -> None:
    page = look(olga, "orders")
    said = text(page)
    assert "Repositories 1 orders in us-east-1" in said
    assert "in eu-west-1, of orders in us-east-1" in said
    assert "Missing objects 2 mirrors" in said and f"is missing 3 objects, the first since 09:02:38: {ORDERS}" in said
    assert 'href="/mirrors/analytics-eu/backlog/?prefix=orders"' in page.content.decode()
    assert "No results for zebra." in text(look(olga, "zebra"))
    assert "None" not in said


def test_every_page_has_the_box(olga: Client, company: dict[str, Mirror]) -> None:
    for address in ("/", "/mirrors/", "/mirrors/lab-eu/", "/jobs/", "/search/"):
        assert 'action="/search/"' in olga.get(address).content.decode()
    assert "Search regions, repositories, mirrors, branches, exports, replication rules and users by" in text(
        olga.get("/search/")
    )


# Ugly input


@pytest.mark.parametrize(
    ("q", "told"),
    [
        ("", "enter something to search for"),
        ("  ", "enter something to search for"),
        ("a\0b", "NUL"),
        ("x" * 10_000, "1,024 characters"),
    ],
)
def test_what_can_be_no_name_is_told(olga: Client, api: Api, q: str, told: str) -> None:
    status, answer = api.call("GET", f"/service/replication/v1/search?q={quote(q)}")
    assert status == 400 and told in answer["message"]
    if q.strip():
        page = look(olga, q)
        assert page.status_code == 400 and told in text(page)
        assert len(page.content) < 20_000


@pytest.mark.parametrize("q", ["%", "_", "\\", "'", '"', "%25", "é", "日本", "\U0001f600", "<script>", "a&b=c", "?"])
def test_signs_stand_for_themselves(olga: Client, company: dict[str, Mirror], q: str) -> None:
    assert SourceBranch.objects.count() > 5
    if q == "_":
        assert "features_v2" in text(look(olga, q)) and "rollback" not in text(look(olga, q))
        return
    page = look(olga, q)
    assert page.status_code == 200 and page.context["results"].number == 0
    assert "<script>" not in page.content.decode().partition("<h1>")[2]


def test_a_path_of_unicode_and_signs_is_found(olga: Client, api: Api) -> None:
    mirror = make_mirror("odd-eu", make_repository("odd", now=NOW), now=NOW)
    commit = Line(mirror.source, "ünï%/x", NOW).commit("first", ago=60)
    path = "t%/_\\ü/日本 <b>&.bin"
    block(mirror, commit, path, now=NOW, ago=30)
    assert ids(api, path, "missing") == ids(api, "t%/_\\ü", "missing") == ["odd-eu"]
    assert ids(api, "t_/", "missing") == []
    assert ids(api, "ünï%/", "branches") == ["ünï%/x"]
    page = look(olga, "t%/_\\ü/日本 <b>").content.decode()
    assert "?prefix=t%25%2F_%5C%C3%BC%2F%E6%97%A5%E6%9C%AC%20%3Cb%3E" in page and "<b>" not in page


# Many


def test_thousands_that_fit_are_cut_short(olga: Client, api: Api) -> None:
    repository = make_repository("many", now=NOW)
    make_mirror("many-eu", repository, now=NOW)
    like = make_commit(repository, "like", parents=[], at=NOW)
    columns = Commit.columns(like.record()) | {"repository": repository, "seen_at": NOW}
    rows = [Commit(**columns | {"sha": f"abcdef{n:058x}"}) for n in range(3000)]
    Commit.objects.bulk_create(rows, batch_size=500)
    answer = found(api, "abcdef")["commits"]
    assert len(answer["results"]) == 20 and answer["has_more"] is True
    assert "Commits more than 20" in text(look(olga, "abcdef"))


def test_only_the_last_rows_are_gone_through_and_the_page_says_so(
    olga: Client, api: Api, company: dict[str, Mirror], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(find, "LOOKED", 1)
    Blocker.objects.filter(path=ORDERS).update(path="early/x")
    answer = found(api, "early/")
    assert answer["missing"] == {"results": [], "has_more": False, "looked_at_all": False}
    assert "Only missing objects can be found by path, of these the last 200,000" in text(look(olga, "early/"))
    assert ids(api, "features_v", "branches") == []
    assert ids(api, "features_v2", "branches") == ["features_v2"]


def test_the_number_of_queries_stays(api: Api, company: dict[str, Mirror]) -> None:
    def asked(q: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            found(api, q)
        return len(captured)

    few = asked("lab")
    assert asked("e") <= few + 1


@pytest.mark.skipif(connection.vendor != "sqlite", reason="the words of SQLite's plan")
def test_an_id_is_found_by_the_index(company: dict[str, Mirror], owner: User) -> None:
    """However many commits there are, none but those that fit are read."""
    plan = named_commits(Mirror.objects.visible_to(owner), "abcdef12").explain()
    assert "SEARCH mirrors_commit USING INDEX" in plan and "sha>? AND sha<?" in plan


def test_the_box_says_where_an_object_can_be_read(lm: Deployment, owner: User, outsider: User, teammate: User) -> None:
    lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.work()
    olga, asked = Client(), {"repository": "us-east-1/lake", "ref": "main", "path": "a"}
    olga.force_login(owner)
    assert "Where can I read this?" in olga.get("/search/").content.decode()
    answer = olga.post("/search/locate/", asked)
    page = answer.content.decode()
    assert answer.status_code == 200 and "Readable in us-east-1" in page and "no-store" in answer["Cache-Control"]
    assert 'href="http://store/src/lake/data/' in page
    answer = olga.post("/search/locate/", asked | {"path": "nowhere"})
    assert (answer.status_code, "has no &#x27;nowhere&#x27;" in answer.content.decode()) == (404, True)
    assert olga.post("/search/locate/", asked | {"repository": ""}).status_code == 400
    assert olga.get("/search/locate/").status_code == 405
    nobody = Client()
    nobody.force_login(outsider)
    assert nobody.post("/search/locate/", asked).status_code == 403
