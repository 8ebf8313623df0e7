"""What is missing or wrong at a mirror, as programs ask for it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit.models import AuditEvent
from core.errors import Denied
from jobs.models import Duty
from mirrors.models import Blocker, Commit, Coverage, Mirror, MirrorCommit
from rbac.models import User
from tests.api import BODY, MIRRORS, Api
from tests.mirrors.factories import Line, at_mirror, block, make_id, make_mirror, make_repository
from tests.mirrors.harness import Deployment, deployment

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 21, 9, 16, 34, tzinfo=UTC)
BLOCKERS = f"{MIRRORS}/lake-eu/blockers"


@pytest.fixture
def mirror() -> Mirror:
    return make_mirror("lake-eu", make_repository("lake", now=NOW), now=NOW)


@pytest.fixture
def main(mirror: Mirror) -> Line:
    """main at A, which the mirror has; B lacks three objects, C a metadata file."""
    line = Line(mirror.source, "main", NOW)
    line.reached(mirror, line.commit("A", ago=600))
    b, c = line.commit("B", ago=500), line.commit("C", ago=100)
    for ago, path in ((400, "orders/1.csv"), (300, "orders/2.csv"), (200, "top")):
        block(mirror, b, path, now=NOW, ago=ago, etag="e1")
    block(mirror, c, "r", now=NOW, ago=90, kind="range", reason="range-missing")
    return line


def asked(api: Api, query: str = "") -> Any:
    status, answer = api.call("GET", f"{BLOCKERS}?{query}")
    assert status == 200, answer
    return answer


def paths(api: Api, query: str = "") -> list[str | None]:
    return [row["path"] for row in asked(api, query)["results"]]


def test_each_thing_is_told_with_its_place_reason_and_age(api: Api, main: Line) -> None:
    first = asked(api)["results"][0]
    row = Blocker.objects.get(path="orders/1.csv")
    assert first == {
        "id": row.pk,
        "kind": "object",
        "path": "orders/1.csv",
        "address": row.address,
        "size": 20_100_000,
        "etag": "e1",
        "reason": "missing",
        "detail": "",
        "gone_at_source": False,
        "waived": False,
        "cause": None,
        "cause_message": None,
        "cause_fix": None,
        "damage": False,
        "holder_kind": "range",
        "holder": row.holder_id,
        "first_seen": "2026-11-21T09:09:54.000Z",
        "attempts": 9,
        "look_at": "2026-11-21T09:17:15.000Z",
    }


def test_a_thing_is_told_in_the_same_words_of_its_branch_and_its_commit(api: Api, main: Line) -> None:
    told = {row["id"]: row for row in asked(api)["results"]}
    _, branches = api.call("GET", f"{MIRRORS}/lake-eu/branches")
    _, commit = api.call("GET", f"{MIRRORS}/lake-eu/commits/{main.commits[1].sha}")
    for holder in (branches["results"][0], commit):
        assert holder["blockers"]
        assert all(row == told[row["id"]] for row in holder["blockers"])


def test_pages_begin_with_what_is_missing_longest(api: Api, main: Line) -> None:
    first = asked(api, "amount=3")
    assert [row["path"] for row in first["results"]] == ["orders/1.csv", "orders/2.csv", "top"]
    assert (first["pagination"]["has_more"], first["all_named"]) == (True, True)
    rest = asked(api, f"amount=3&after={first['pagination']['next_offset']}")
    assert [row["kind"] for row in rest["results"]] == ["range"]
    assert rest["pagination"]["has_more"] is False


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("kind=range", [None]),
        ("reason=missing", ["orders/1.csv", "orders/2.csv", "top"]),
        ("prefix=orders/", ["orders/1.csv", "orders/2.csv"]),
        ("prefix=Orders/", []),
        ("prefix=orders/&reason=range-missing", []),
        ("prefix=%25", []),
    ],
)
def test_filters_leave_what_fits_all_of_them(api: Api, main: Line, query: str, found: list[str | None]) -> None:
    assert paths(api, query) == found


def test_a_commit_is_blocked_by_its_own_things_and_by_those_of_the_commits_that_it_needs(api: Api, main: Line) -> None:
    b, c = main.commits[1:]
    assert len(paths(api, f"commit={b.sha}")) == 3
    assert len(paths(api, f"commit={c.sha[:8]}")) == 4
    assert paths(api, f"commit={main.commits[0].sha}") == []


def test_a_branch_is_blocked_by_what_its_newest_commit_needs(api: Api, main: Line, mirror: Mirror) -> None:
    dev = Line(mirror.source, "dev", NOW)
    at_mirror(mirror, dev.commit("D", ago=50, parents=[main.commits[0]]), "checking", now=NOW)
    assert paths(api, "branch=dev") == []
    assert len(paths(api, "branch=main")) == 4
    assert api.call("GET", f"{BLOCKERS}?branch=none")[0] == 404


def test_groups_say_how_many_and_since_when(api: Api, main: Line) -> None:
    groups = asked(api, "group_by=reason")["results"]
    assert groups == [
        {"reason": "missing", "blockers": 3, "oldest": "2026-11-21T09:09:54.000Z"},
        {"reason": "range-missing", "blockers": 1, "oldest": "2026-11-21T09:15:04.000Z"},
    ]
    groups = asked(api, "group_by=prefix")["results"]
    counted = {row["prefix"]: row["blockers"] for row in groups}
    assert (counted, groups[0]["prefix"]) == ({"orders/": 2, "": 1, None: 1}, "orders/")


def test_groups_below_a_prefix_are_its_folders(api: Api, main: Line, mirror: Mirror) -> None:
    block(mirror, main.commits[1], "orders/eu/3.csv", now=NOW, ago=9)
    groups = asked(api, "group_by=prefix&prefix=orders/")["results"]
    assert {row["prefix"]: row["blockers"] for row in groups} == {"orders/": 2, "orders/eu/": 1}


def test_groups_come_in_pages(api: Api, main: Line) -> None:
    first = asked(api, "group_by=prefix&amount=2")
    rest = asked(api, f"group_by=prefix&amount=2&after={first['pagination']['next_offset']}")
    assert (len(first["results"]), len(rest["results"]), rest["pagination"]["has_more"]) == (2, 1, False)


def test_it_says_when_not_all_is_named(api: Api, main: Line, mirror: Mirror) -> None:
    Coverage.objects.create(
        mirror=mirror, range_id=make_id("r"), state="waiting", depth="etag", problems=5000, checked_at=NOW
    )
    assert asked(api)["all_named"] is False


@pytest.mark.parametrize(
    "query",
    [
        "kind=file",
        "group_by=path",
        "after=x",
        "amount=0",
        "commit=abc",
        "format=csv&group_by=reason",
        "format=xml",
        "after=-1",
    ],
)
def test_what_is_asked_wrongly_is_told_in_json(api: Api, main: Line, query: str) -> None:
    status, answer = api.call("GET", f"{BLOCKERS}?{query}")
    assert status == 400
    assert query.split("&")[-1].split("=")[0] in answer["message"]


def test_a_commit_that_nobody_knows_is_not_found(api: Api, main: Line) -> None:
    assert api.call("GET", f"{BLOCKERS}?commit={'0' * 64}")[0] == 404
    assert api.call("GET", f"{BLOCKERS}?commit={'0' * 64}&format=csv")[0] == 404


def read_csv(api: Api, query: str = "format=csv") -> list[dict[str, str]]:
    answer = api.client.get(f"{BLOCKERS}?{query}", headers=api.headers)
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/csv; charset=utf-8")
    assert answer["Content-Disposition"] == 'attachment; filename="lake-eu-blockers.csv"'
    assert answer.streaming
    text = b"".join(answer.streaming_content).decode()  # type: ignore[arg-type]
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_csv_has_all_of_them_not_a_page(api: Api, main: Line) -> None:
    with mock.patch("db.chunks.ROWS", 2):
        rows = read_csv(api, "format=csv&amount=1")
    assert [row["path"] for row in rows] == ["orders/1.csv", "orders/2.csv", "top", ""]
    assert (rows[0]["size"], rows[0]["damage"], rows[3]["size"]) == ("20100000", "false", "")
    assert len(read_csv(api, "format=csv&prefix=orders/")) == 2


def test_csv_may_be_asked_for_by_its_type(api: Api, main: Line) -> None:
    answer = api.client.get(BLOCKERS, headers=api.headers | {"Accept": "text/csv"})
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    for headers in ({}, {"Accept": "application/xml"}):
        assert api.client.get(BLOCKERS, headers=api.headers | headers)["Content-Type"] == "application/json"


@pytest.mark.parametrize("path", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_no_path_becomes_a_formula(api: Api, main: Line, mirror: Mirror, path: str) -> None:
    block(mirror, main.commits[1], path, now=NOW, ago=1)
    assert read_csv(api)[-1]["path"] == f"'{path}"


def test_csv_keeps_quotes_and_line_breaks_inside_of_a_cell(api: Api, main: Line, mirror: Mirror) -> None:
    path = 'a,"b"\nc;é'
    block(mirror, main.commits[1], path, now=NOW, ago=1)
    assert read_csv(api)[-1]["path"] == path


def test_the_number_of_queries_does_not_grow(api: Api, main: Line, mirror: Mirror) -> None:
    query = f"commit={main.commits[2].sha}"
    asked(api, query)
    with CaptureQueriesContext(
        connection,
    ) as few:
        asked(api, query)
    for number in range(40):
        block(mirror, main.commits[1], f"more/{number}", now=NOW, ago=5)
        at_mirror(mirror, main.commit(f"M{number}", ago=4), "checking", now=NOW)
    with CaptureQueriesContext(connection) as many:
        assert len(asked(api, query)["results"]) == 44
    assert len(many) == len(few)


def test_outsiders_see_and_retry_nothing(outsider: User, teammate: User, main: Line) -> None:
    assert Api(outsider).call("GET", BLOCKERS)[0] == 403
    assert Api(outsider).call("POST", f"{BLOCKERS}/retry", {})[0] == 403
    assert Api(teammate).call("GET", BLOCKERS)[0] == 200
    assert Api(teammate).call("POST", f"{BLOCKERS}/retry", {})[0] == 403


# --- retry ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def wake() -> Iterator[mock.Mock]:
    with mock.patch("mirrors.services.backlog.duties.wake") as watched:
        yield watched


@pytest.fixture
def due() -> Callable[[], set[str]]:
    """Paths of what is due now."""
    with mock.patch("db.clock.now", return_value=NOW):
        yield lambda: set(Blocker.objects.filter(look_at__lte=NOW).values_list("path", flat=True))


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ({}, {"orders/1.csv", "orders/2.csv", "top", ""}),
        ({"reason": "range-missing"}, {""}),
        ({"reason": "archived"}, set()),
        ({"ids": [0]}, {"orders/2.csv"}),
    ],
)
def test_a_retry_makes_things_due_wakes_the_validator_and_is_audited(
    api: Api, main: Line, mirror: Mirror, wake: mock.Mock, due: Callable[[], set[str]], body: Any, found: set[str]
) -> None:
    if "ids" in body:
        body = {"ids": [Blocker.objects.get(path="orders/2.csv").pk, 10**9]}
    status, answer = api.call("POST", f"{BLOCKERS}/retry", body)
    assert (status, answer["blockers"], due()) == (202, len(found), found)
    assert wake.call_args_list == [mock.call("validate", mirror.pk), mock.call("manage", mirror.pk)]
    event = AuditEvent.objects.get(action="fs:OperateMirror", verb="retry", subject="mirror/lake-eu")
    assert (event.actor, event.after["retry_blockers"]) == ("olga", body or {"all": True})
    assert (event.after["mirror"], event.after["blockers"]) == ("lake-eu", len(found))


def test_another_mirrors_things_are_left_alone(
    api: Api, main: Line, mirror: Mirror, due: Callable[[], set[str]]
) -> None:
    other = make_mirror("lake-ap", mirror.source, region="ap-southeast-2", now=NOW)
    there = block(other, main.commits[1], "there", now=NOW, ago=9)
    assert api.call("POST", f"{BLOCKERS}/retry", {"ids": [there.pk]})[1]["blockers"] == 0
    assert api.call("POST", f"{BLOCKERS}/retry", {})[1]["blockers"] == 4
    assert "there" not in due()


def test_a_refused_record_is_not_looked_for(api: Api, main: Line, mirror: Mirror) -> None:
    block(mirror, main.commits[1], "x", now=NOW, ago=9, kind="record", reason="record-refused")
    assert api.call("POST", f"{BLOCKERS}/retry", {"reason": "record-refused"})[1]["blockers"] == 0


@pytest.mark.parametrize(
    "body", [[], {"ids": []}, {"ids": ["x"]}, {"ids": [1], "reason": "missing"}, {"id": 1}, {"reason": ""}, "{"]
)
def test_a_retry_that_names_nothing_properly_retries_nothing(api: Api, main: Line, body: Any, wake: mock.Mock) -> None:
    assert api.call("POST", f"{BLOCKERS}/retry", body)[0] == 400
    assert not wake.called


@pytest.mark.django_db(transaction=True)
def test_what_has_arrived_is_found_at_once_after_a_retry(api: Api) -> None:
    with deployment() as lm:
        _promoted_after_a_retry(api, lm)


def _promoted_after_a_retry(api: Api, lm: Deployment) -> None:
    assert api.call("POST", MIRRORS, BODY)[0] == 201
    commit = lm.lake.commit(files={"a": b"1"})
    lm.arrive(lm.lake.address_of(commit, "a"))
    lm.work()
    Blocker.objects.update(look_at=NOW + timedelta(days=3650))
    lm.arrive()
    lm.work(1, look=False)
    assert lm.head() == ""
    Duty.objects.filter(kind="validate").update(due_at=NOW + timedelta(days=3650), woken_at=None)
    assert api.call("POST", f"{BLOCKERS}/retry", {})[0] == 202
    assert Duty.objects.get(kind="validate").woken_at is not None
    lm.work(1, look=False)
    assert lm.head() == commit
    assert MirrorCommit.objects.get(commit=Commit.objects.get(sha=commit)).data == "complete"


def test_what_replication_has_not_brought_is_found_by_its_cause(api: Api, main: Line) -> None:
    told = {"cause": "NoRule", "cause_told": "no rule brings it", "cause_advice": "Add a rule"}
    Blocker.objects.filter(path="orders/1.csv").update(**told)
    [row] = asked(api, "cause=NoRule")["results"]
    assert (row["cause"], row["cause_message"], row["cause_fix"]) == ("NoRule", "no rule brings it", "Add a rule")
    groups = {group["cause"]: group["blockers"] for group in asked(api, "group_by=cause")["results"]}
    assert groups["NoRule"] == 1
    assert None in groups, "of the others nobody knows"
    assert api.call("GET", f"{MIRRORS}/lake-eu/blockers?cause=Weather")[0] == 400


def test_replacing_is_asked_for_in_so_many_words(api: Api, main: Line) -> None:
    url, spoilt = f"{MIRRORS}/lake-eu/bring", Blocker.objects.get(path="orders/1.csv")
    Blocker.objects.filter(pk=spoilt.pk).update(reason="size-differs")
    with mock.patch("deployment.wiring.clients.require_writable"):
        told = api.call("POST", url, {"blockers": [spoilt.pk]})[1]
        assert told["blockers"] == 0 and told["message"].endswith('unless you ask with "replace": true')
        status, told = api.call("POST", url, {"all": True, "replace": True})
        assert (status, told["blockers"], told["message"]) == (202, 1, "replacing 1 object now")
        assert api.call("POST", url, {"replace": True})[0] == 400
    assert Blocker.objects.get(replace_asked_at__isnull=False) == spoilt
    assert Mirror.objects.get(name="lake-eu").bring_all_at is None
    after = AuditEvent.objects.filter(verb="bring", subject="mirror/lake-eu").latest("pk").after
    assert after["replace"] == {"all": True} and "bring" not in after


def test_bringing_is_asked_for_audited_and_refused_where_nothing_may_be_copied(api: Api, main: Line) -> None:
    url, named = f"{MIRRORS}/lake-eu/bring", Blocker.objects.get(path="orders/1.csv")
    with mock.patch("deployment.wiring.clients.require_writable") as writable:
        status, told = api.call("POST", url, {"blockers": [named.pk]})
        assert (status, told["blockers"], told["message"]) == (202, 1, "copying 1 object now")
        assert api.call("POST", url, {"addresses": [named.address, "data/nobody-waits-for-it"]})[1]["blockers"] == 1
        assert Blocker.objects.filter(bring_asked_at__isnull=False).get() == named
        assert writable.call_count == 2
        assert api.call("POST", url, {"all": True})[1]["blockers"] == 4
        assert Mirror.objects.get(name="lake-eu").bring_all_at is not None
        assert AuditEvent.objects.filter(verb="bring", subject="mirror/lake-eu").count() == 3
        for wrong in ({}, {"all": False}, {"all": True, "blockers": [1]}, {"blockers": []}, {"files": [1]}):
            assert api.call("POST", url, wrong)[0] == 400, wrong
        writable.side_effect = Denied("403 AccessDenied")
        status, told = api.call("POST", url, {"all": True})
        assert (status, "takes no object: 403 AccessDenied" in told["message"]) == (409, True)
    Mirror.objects.filter(name="lake-eu").update(object_replication="managed")
    assert api.call("POST", url, {"all": True})[0] == 409


def test_what_is_copied_on_request_is_told_with_the_mirror_and_can_be_stopped(api: Api, main: Line) -> None:
    url = f"{MIRRORS}/lake-eu"
    assert api.call("GET", url)[1]["bringing"] is None
    assert api.call("POST", f"{url}/bring/stop")[1] == {
        "message": "copying is stopped: nothing was left to copy",
        "blockers": 0,
    }
    with mock.patch("deployment.wiring.clients.require_writable"):
        api.call("POST", f"{url}/bring", {"all": True})
    told = api.call("GET", url)[1]["bringing"]
    assert (told["what"], told["missing"], told["wrong"], told["asked_by"]) == ("all", 4, 0, "olga")
    since, until = (datetime.fromisoformat(told[name]) for name in ("asked_at", "ends_at"))
    assert until - since == timedelta(hours=24) and told["held"] is False
    assert api.call("GET", f"{url}/copying")[1]["bringing"] == told
    assert api.call("POST", f"{url}/pause")[0] == 200
    assert api.call("GET", url)[1]["bringing"]["held"] is True
    status, answer = api.call("POST", f"{url}/bring/stop")
    assert (status, answer["blockers"]) == (200, 4)
    assert answer["message"] == "copying is stopped: 4 objects are left to the stores"
    assert api.call("GET", url)[1]["bringing"] is None
    stopped = AuditEvent.objects.get(verb="stop_bringing")
    assert (stopped.actor, stopped.subject, stopped.after["files"]) == ("olga", "mirror/lake-eu", 4)
