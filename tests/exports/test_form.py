"""New and Edit of an export, without a browser: what is said before anything is saved."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any
from unittest import mock

import pytest
from django.test import Client

from adapters.s3 import write_probe
from audit.models import AuditEvent
from core.access.policies import branch_arn
from core.errors import Denied, NotFound, Unauthenticated, Unreachable
from exports.models import Export
from exports.services.exports import Wish, export_set
from rbac import services
from rbac.models import User
from tests.api import Api
from tests.exports.world import World
from tests.fakes import EmptyPlace, Lake
from tests.mirrors.harness import Deployment
from tests.rbac.test_form_recovery import KEPT, sign_in

pytestmark = pytest.mark.django_db

CHECK = "/api/v1/repositories/lake/branches/main/export-check"
CONFIG = "/api/v1/repositories/lake/branches/main/continuous-export"
TYPED = {
    "region": "us-east-1",
    "repository": "lake",
    "branch": "main",
    "path": "s3://out/latest",
    "status_path": "s3://out/states",
    "patterns": r".*/day=\d+/",
    "continuous": "on",
}
BODY = {
    "exportPath": "s3://out/latest",
    "exportStatusPath": "s3://out/states",
    "lastKeysInPrefixRegexp": [r".*/day=\d+/", ".*/_SUCCESS"],
    "isContinuous": True,
}


@pytest.fixture
def olga(owner: User) -> Client:
    """Olga's browser."""
    client = Client()
    client.force_login(owner)
    return client


def commit(w: World) -> str:
    """A branch with two days of logs."""
    days = {f"logs/day=0{n}/part-{m}": b"12345" for n in (1, 2) for m in (1, 2)}
    return w.lake.commit(files=days | {"logs/day=01/_SUCCESS": b"", "top": b"1"})


def part(client: Client, target: str, address: str = "/exports/new/", **typed: str) -> str:
    answer = client.post(address, TYPED | typed, headers={"HX-Request": "true", "HX-Target": target})
    assert answer.status_code == 200
    page = answer.content.decode()
    assert "<html" not in page and "None" not in page.replace("None of their policies allows it", "")
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", "", page)))


def checks(told: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    return {check["id"]: check for check in told["checks"]}


def test_a_plan_in_order_is_checked_by_really_trying_and_leaves_nothing(w: World, api: Api) -> None:
    head = commit(w)
    status, told = api.call("POST", CHECK, BODY)
    assert (status, told["ok"], told["unknown"], told["changes"]) == (200, True, [], [])
    found = checks(told)
    assert {check["state"] for check in found.values()} == {"ok"}
    for action in ("ListBucket", "PutObject", "GetObject", "DeleteObject", "AbortMultipartUpload"):
        assert f"path-right:s3:{action}" in found
    assert "out is at" in found["path-store"]["message"]
    assert told["patterns"] | {"expressions": []} == {
        "directories": 4,
        "keys": 6,
        "whole": True,
        "marked": 2,
        "marked_first": ["logs/day=01/", "logs/day=02/"],
        "last_keys": 1,
        "last_keys_first": ["logs/day=01/_SUCCESS"],
        "expressions": [],
    }
    run = told["next_run"]
    assert (run["commit"], run["full"], run["copy"], run["copy_bytes"], run["estimated"]) == (head, True, 6, 21, False)
    assert run["seconds"] > 0 and run["requests"] >= 6 and not run["seconds_measured"]
    assert w.there("") == {} and not Export.objects.exists()
    assert not w.client.list_multipart_uploads(Bucket="out").get("Uploads")


def test_each_right_that_is_missing_is_told_with_its_statement(w: World, api: Api) -> None:
    commit(w)
    send = w.fast.send
    methods = {"PUT": "PutObject", "GET": "GetObject", "POST": "AbortMultipartUpload", "DELETE": "DeleteObject"}
    for refused, action in methods.items():

        def guarded(method: str, url: str, *args: Any, refused: str = refused, **more: Any) -> Any:
            if method == refused and write_probe.NAME in url:
                raise Denied("403 AccessDenied")
            return send(method, url, *args, **more)

        with mock.patch.object(w.fast, "send", guarded):
            told = api.call("POST", CHECK, BODY)[1]
        check = checks(told)[f"path-right:s3:{action}"]
        assert (check["state"], told["ok"]) == ("failed", False)
        assert f'"s3:{action}"' in check["policy"] and "arn:aws:s3:::out/latest/*" in check["policy"]
        left = [key for key in w.there("") if write_probe.NAME in key]
        assert bool(left) is (refused == "DELETE")
    assert any(f"Remove s3://out/{key}" in check["fix"] for key in left)


def test_what_a_store_answers_is_told_with_what_to_do(w: World, api: Api) -> None:
    commit(w)
    for error, state, words in (
        (NotFound("404 NoSuchBucket"), "failed", "There is no bucket out"),
        (Unauthenticated("403 InvalidAccessKeyId"), "failed", "refuses the key"),
        (Unreachable("http://nowhere does not answer"), "failed", "does not answer"),
        (Denied("403 AccessDenied", hint="Allow it"), "warning", "can't be listed"),
    ):
        with mock.patch.object(w.fast, "page", side_effect=error):
            found = checks(api.call("POST", CHECK, BODY)[1])
        told = found["path-bucket"]
        assert (told["state"], words in told["message"], bool(told["fix"])) == (state, True, True), told
    assert '"s3:ListBucket"' in found["path-right:s3:ListBucket"]["policy"]


def test_what_may_not_be_fails_and_nothing_is_written_there(w: World, api: Api) -> None:
    commit(w)
    w.lm.add_mirror()
    wrong: list[tuple[dict[str, Any], str, str]] = [
        ({"exportPath": "s3://src/lake/in"}, "path-apart", "own storage namespace"),
        ({"exportPath": "s3://dst/lake"}, "path-apart", "the mirror 'lake-eu'"),
        ({"exportStatusPath": "s3://out/latest/s"}, "status-apart", "inside of the export path"),
        ({"exportPath": "http://x"}, "path", "not an s3:// address"),
        ({"lastKeysInPrefixRegexp": ["ok", "(open"]}, "patterns", "attern 2, '(open', is not a valid RE2 expression"),
    ]
    with mock.patch("exports.preflight.checks.probe", wraps=write_probe.probe) as tried:
        for body, check, words in wrong:
            told = api.call("POST", CHECK, BODY | body)[1]
            found = checks(told)[check]
            assert (found["state"], words in found["message"], told["ok"]) == ("failed", True, False)
            assert found["fix"]
    places = {call.args[1] for call in tried.call_args_list}
    assert places == {"s3://out/latest", "s3://out/states"}


def test_where_nobody_tells_whose_a_place_is_nothing_is_written(w: World, api: Api) -> None:
    commit(w)
    silent = mock.patch.object(w.lm.us, "list_repositories", side_effect=Unreachable("no answer"))
    with silent, mock.patch("exports.preflight.checks.probe") as tried:
        told = api.call("POST", CHECK, BODY)[1]
    found = checks(told)["path-apart"]
    assert (found["state"], told["ok"], tried.called) == ("unknown", False, False)
    assert "lakeFS of us-east-1 can't be asked" in found["message"]


def test_a_place_from_which_the_branch_was_given_objects_is_refused(w: World, api: Api) -> None:
    w.put("latest/in/c", b"1")
    w.lake.link("c", "s3://out/latest/in/c", b"1")
    found = checks(api.call("POST", CHECK, BODY)[1])["path-apart"]
    assert found["state"] == "failed" and "'c' was imported from there" in found["message"]
    for elsewhere in ("s3://out/late", "s3://out/latest/in/cc"):
        assert checks(api.call("POST", CHECK, BODY | {"exportPath": elsewhere})[1])["path-apart"]["state"] == "ok"


def test_files_that_are_there_and_markers_of_the_user_are_warned_of(w: World, api: Api) -> None:
    w.lake.commit(files={"a/_lakefs_success": b"", "a/b": b"1"})
    w.put("latest/theirs")
    found = checks(api.call("POST", CHECK, BODY | {"lastKeysInPrefixRegexp": ["nothing"]})[1])
    assert {name for name, one in found.items() if one["state"] == "warning"} == {
        "path-content",
        "marker-names",
        "patterns",
    }
    assert "a/_lakefs_success" in found["marker-names"]["message"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"exportpath": "s3://out/x"}, "exportpath: is not a field here"),
        ({"exportPath": "s3://out/" + "x" * 3000}, "exportPath"),
        ({"exportPath": "s3://büro/x"}, "exportPath"),
        ({"exportPath": "s3://out/\ud800"}, "lone surrogate"),
        ({"lastKeysInPrefixRegexp": ["x" * 1001]}, "lastKeysInPrefixRegexp"),
        ({"lastKeysInPrefixRegexp": [7]}, "lastKeysInPrefixRegexp"),
        ({"isContinuous": 1}, "isContinuous"),
    ],
)
def test_bad_bodies_are_refused_by_put(lm: Deployment, api: Api, body: dict[str, Any], field: str) -> None:
    lm.lake.commit(files={"a": b"1"})
    status, told = api.call("PUT", CONFIG, {"exportPath": "s3://out/latest"} | body)
    assert (status, field in told["message"]) == (400, True), told
    assert not Export.objects.exists()


def test_a_store_that_does_not_answer_is_a_bad_path(lm: Deployment, api: Api, olga: Client) -> None:
    lm.lake.commit(files={"a": b"1"})
    with mock.patch.object(EmptyPlace, "page", side_effect=Unreachable("http://nowhere does not answer")):
        status, told = api.call("PUT", CONFIG, BODY)
        assert (status, "exportPath" in told["message"], "export_stores.out" in told["message"]) == (400, True, True)
        page = olga.post("/exports/new/", TYPED)
    assert page.status_code == 400 and b"http://nowhere does not answer" in page.content
    assert rb".*/day=\d+/" in page.content and not Export.objects.exists()


def test_a_pattern_that_would_go_back_for_ever_is_tried_in_no_time(lm: Deployment, olga: Client) -> None:
    lm.lake.commit(files={"a" * 1000: b"1"})
    assert "1 of 1 file would come last" in part(olga, "trial", patterns="(a*)*a")
    assert "0 of 1 file would come last" in part(olga, "trial", patterns="(a+)+b\n(a|aa)+$b")


def test_the_parts_of_the_form_say_what_is_found_and_write_nothing(w: World, olga: Client) -> None:
    commit(w)
    said = part(olga, "trial", patterns=".*/day=\\d+/\n_SUCCESS\nnone")
    for words in ("2 of 4 directories would get a _lakefs_success: logs/day=01/, logs/day=02/.", "1 of 6 files"):
        assert words in said
    assert "none matches nothing" in said
    assert "pattern 1, 'a(b', is not a valid RE2 expression: missing ), at character 2" in part(
        olga, "trial", patterns="a(b"
    )
    assert "Files6 Bytes21 bytes" in part(olga, "cost")
    said = part(olga, "preflight")
    assert "5 rights not tested" not in said and "6 rights not tested" in said
    assert "--prefix-regex" in said and "continuous-export" in said
    assert "there is no branch 'none'" in part(olga, "preflight", branch="none")
    assert "Nothing has been checked yet" in part(olga, "preflight", repository="")
    assert w.there("") == {} and not Export.objects.exists()
    whole = olga.post("/exports/new/", TYPED | {"check": "1"}).content.decode()
    assert "Ready: " in whole and "2 of 4" in whole


def test_what_is_bounded_says_so(lm: Deployment, olga: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    lm.lake.commit(files={f"bounded/{n}/x": b"1" for n in range(9)})
    monkeypatch.setattr("exports.preflight.branch_sample.MOST_DIRECTORIES", 3)
    monkeypatch.setattr("exports.preflight.branch_sample.MOST_KEYS", 4)
    said = part(olga, "trial", patterns=r"bounded/\d/")
    assert "1 of the first 3 directories" in said and "Not everything was tried: 9 of 9 files were read" in said


def test_edit_says_what_a_change_will_do(w: World, olga: Client, api: Api) -> None:
    commit(w)
    export = w.set()
    w.work()
    second = w.lake.commit(files={"logs/day=03/part-1": b"123"})
    address = f"/exports/{export.pk}/edit/"
    said = part(olga, "preflight", address, patterns="")
    assert "Nothing changes" in said
    said = part(olga, "preflight", address, path="s3://out/other", patterns="", continuous="")
    for words in (
        "Everything is exported again, to s3://out/other",
        "The files at s3://out/latest stay",
        "The current head of the branch is exported once more",
    ):
        assert words in said
    assert "What has changed since" in part(olga, "cost", address, patterns="")
    run = api.call("POST", CHECK, BODY)[1]["next_run"]
    assert (run["commit"], run["full"], run["copy"], run["copy_bytes"]) == (second, False, 1, 3)
    assert checks(api.call("POST", CHECK, BODY)[1])["path-content"]["state"] == "ok"
    moved = api.call("POST", CHECK, BODY | {"exportPath": "s3://out/other"})[1]
    assert moved["next_run"]["full"] and moved["next_run"]["copy"] == 7 and moved["changes"]


def test_where_a_check_fails_nothing_is_saved_unless_somebody_insists(w: World, olga: Client) -> None:
    commit(w)
    typed = TYPED | {"path": "s3://no-such-bucket/latest", "status_path": ""}
    answer = olga.post("/exports/new/", typed)
    page = re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", "", answer.content.decode())))
    assert answer.status_code == 409 and "failed, so the export was not created" in page
    assert "There is no bucket no-such-bucket" in page and "Export anyway" in page
    assert not Export.objects.exists()
    assert olga.post("/exports/new/", typed | {"anyway": "1"}).status_code == 302
    made = AuditEvent.objects.get(verb="create", subject__contains="lake")
    assert "path-bucket" in made.after["failed_checks"]
    address = f"/exports/{Export.objects.get().pk}/edit/"
    answer = olga.post(address, typed | {"patterns": ".*/x"})
    assert answer.status_code == 409 and "Save anyway" in answer.content.decode()
    assert Export.objects.get().patterns == TYPED["patterns"].split()
    assert olga.post(address, TYPED | {"patterns": ".*/x"}).status_code == 302


def test_who_may_not_configure_learns_nothing(lm: Deployment, teammate: User) -> None:
    lm.lake.commit(files={"a": b"1"})
    client = Client()
    client.force_login(teammate)
    refused = client.get("/exports/new/")
    assert (refused.status_code, "fs:ExportConfig" in refused.content.decode()) == (403, True)
    assert "/exports/new/" not in client.get("/exports/").content.decode()
    may(teammate, "fs:ExportConfig", branch="other")
    client.force_login(User.objects.get(pk=teammate.pk))
    assert "/exports/new/" in client.get("/exports/").content.decode()
    for target in ("trial", "preflight", "cost"):
        assert "fs:ExportConfig" in part(client, target)
    assert Api(teammate).call("POST", CHECK, BODY)[0] == 403


def test_a_session_that_ended_loses_nothing_that_was_typed(lm: Deployment, client: Client, owner: User) -> None:
    refused = client.post("/exports/new/", TYPED)
    assert refused.status_code == 401
    answer = sign_in(client, refused)
    page = client.get(answer["Location"]).content.decode()
    assert KEPT in page and "s3://out/latest" in page and r".*/day=\d+/" in page
    assert not Export.objects.exists()


def may(user: User, *actions: str, branch: str = "main") -> None:
    """On a branch of `lake`, and nowhere else."""
    statement = {"effect": "allow", "action": list(actions), "resource": branch_arn("lake", branch)}
    policy = services.policy_put(actor="system:tests", document={"id": "some", "statement": [statement]})
    services.policy_attach(actor="system:tests", policy=policy, user=user)


def test_who_may_not_read_the_branch_is_told_nothing_of_its_files(w: World, outsider: User) -> None:
    w.lake.commit(files={"salaries/ann/_lakefs_success": b""})
    may(outsider, "fs:ExportConfig")
    status, told = Api(outsider).call("POST", CHECK, BODY | {"lastKeysInPrefixRegexp": [".*"]})
    assert (status, told["ok"], told["patterns"], told["next_run"]) == (200, True, None, None)
    assert {checks(told)[name]["state"] for name in ("patterns", "marker-names")} == {"unknown"}
    assert len(told["unknown"]) == 2 and "fs:ReadBranch" in str(told["unknown"])
    client = Client()
    client.force_login(outsider)
    said = [part(client, target, patterns=".*") for target in ("trial", "cost", "preflight")]
    assert "may not fs:ReadBranch" in said[0] and "may not fs:ReadBranch" in said[1]
    assert "salaries" not in str(told) + str(said)


@pytest.mark.parametrize(
    ("path", "whose"),
    [
        ("s3://out/hidden", "s3://out/hidden/place, where theirs/main (us-east-1) is exported to"),
        ("s3://dst", "s3://dst/lake, where the mirror 'lake-eu' lies"),
        ("s3://src/secret", "s3://src/secret/data, the storage namespace of the repository 'unused' in us-east-1"),
    ],
)
def test_whose_a_place_is_learns_who_may_see_them(w: World, api: Api, outsider: User, path: str, whose: str) -> None:
    commit(w)
    w.lm.add_mirror()
    w.lm.us.add_repository("unused", "s3://src/secret/data")
    Lake(w.lm.us, w.store, name="theirs", namespace="s3://src/theirs").commit(files={"a": b"1"})  # type: ignore[arg-type]
    wish = Wish("s3://out/hidden/place")
    export_set(actor=w.owner, region="us-east-1", repository="theirs", branch="main", wish=wish)
    may(outsider, "fs:ExportConfig", "fs:ReadBranch")
    body = {"exportPath": path}
    for someone, told in ((Api(outsider), "overlaps a place that you may not see"), (api, f"and {whose}")):
        status, answer = someone.call("PUT", CONFIG, body)
        check = checks(someone.call("POST", CHECK, body)[1])["path-apart"]
        assert (status, check["state"]) == (400, "failed")
        assert f"{path} {told}" in answer["message"] and f"{path} {told}" in check["message"]
        assert (whose in str(answer) + str(check)) is (someone is api)


@pytest.mark.django_db
def test_hooks_are_tried_and_counted_only_if_they_are_exported(w: World, api: Api) -> None:
    w.lake.commit(files={"_lakefs_actions/h.yaml": b"on: push", "d/a": b"1"})
    found = {}
    for actions in (True, False):
        wanted = {"exportPath": "s3://out/new", "lastKeysInPrefixRegexp": [".*"], "includeActions": actions}
        told = api.call("POST", "/api/v1/repositories/lake/branches/main/export-check", wanted)[1]
        found[actions] = told["patterns"]["marked_first"], told["patterns"]["whole"], told["next_run"]["copy"]
    assert "_lakefs_actions/" in found[True][0] and "_lakefs_actions/" not in found[False][0]
    assert found[True][1:] == (True, found[False][2] + 1) and found[False][1]


# --- suggestions ------------------------------------------------------------------------------------------------------


def picks(client: Client, **typed: str) -> str:
    answer = client.post("/exports/new/", TYPED | typed, headers={"HX-Request": "true", "HX-Target": "picks"})
    assert answer.status_code == 200
    return answer.content.decode()


def test_repositories_branches_and_places_are_suggested(w: World, olga: Client) -> None:
    commit(w)
    page = picks(olga)
    assert '<option value="lake">' in page and '<option value="main">' in page
    assert f'<option value="s3://{w.lake.repository.info.storage_namespace.split("/")[2]}/exports/lake/main">' in page
    begun = olga.get("/exports/new/").content.decode()
    assert 'list="pick-branches"' in begun and 'hx-trigger="load, change' in begun
    w.lm.us.failing |= {"list_repositories": Unreachable("none"), "list_branches": Unreachable("none")}
    assert "<option" not in picks(olga)


def test_only_what_one_may_export_is_suggested(w: World, outsider: User, client: Client) -> None:
    commit(w)
    may(outsider, "fs:ExportConfig", branch="other")
    client.force_login(outsider)
    assert "<option" not in picks(client)
