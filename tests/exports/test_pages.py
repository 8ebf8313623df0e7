"""The pages of exports, in every state."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from exports.models import Export, ExportDirectory, ExportFailure, ExportRun
from rbac.models import User
from tests.mirrors.harness import Deployment

pytestmark = pytest.mark.django_db
HEAD, OLD = "e77d1f02" * 8, "9f31c0aa" * 8
NOW = datetime.now(UTC)


@pytest.fixture
def olga(owner: User) -> Client:
    """Olga's browser."""
    client = Client()
    client.force_login(owner)
    return client


def an_export(branch: str = "main", **more: Any) -> Export:
    fields = {
        "region": "us-east-1",
        "repository": "analytics",
        "branch": branch,
        "creation_date": 1,
        "storage_namespace": "s3://src/analytics",
        "path": f"s3://company-bucket/{branch}",
        "head": HEAD,
        "head_at": datetime.now(UTC),  # a suite may take longer than a look at the source counts
        "status_path": "s3://company-bucket-status/s",
        "created_at": NOW,
        "changed_at": NOW,
        "continuous": True,
    }
    return Export.objects.create(**fields | more)


def a_run(export: Export, **more: Any) -> ExportRun:
    fields = {"export": export, "ref": HEAD, "base": OLD, "path": export.path, "status_path": export.status_path}
    return ExportRun.objects.create(**fields | {"started_at": NOW - timedelta(seconds=38)} | more)


def failed() -> Export:
    export = an_export(
        "failing",
        state="export-failed",
        error="12 tasks failed: access denied",
        last_success_ref=OLD,
        path_at_success="s3://company-bucket/failing",
        current_ref=HEAD,
    )
    run = a_run(export, phase="copy", outcome="export-failed", ended_at=NOW, to_copy=8112, copied=8100, failed=12)
    ExportRun.objects.filter(pk=run.pk).update(
        told="status: export-failed, signalled_errors: 12\n", told_path=run.status_path
    )
    ExportFailure.objects.create(
        run=run, key=b"orders/a b+c%2F#?.csv", reason="denied", detail="403 AccessDenied", at=NOW
    )
    ExportFailure.objects.create(run=run, key=b"bad\xff", reason="invalid", detail="no UTF-8", at=NOW)
    ExportDirectory.objects.create(run=run, path=b"orders/", depth=1, state="held")
    return export


def body(client: Client, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status
    text = answer.content.decode()
    assert "None" not in text
    return text


def test_without_exports_the_list_says_how_to_begin(olga: Client) -> None:
    assert "Create an export" in body(olga, "/exports/")


def test_failed_ones_stand_first(olga: Client) -> None:
    an_export(
        "good",
        state="exported-successfully",
        last_success_ref=HEAD,
        path_at_success="s3://company-bucket/good",
        succeeded_at=NOW,
    )
    failed()
    an_export("new")
    page = body(olga, "/exports/")
    assert page.index("analytics · failing") < page.index("analytics · new") < page.index("analytics · good")


def test_a_failed_export_says_why_and_offers_repair(olga: Client) -> None:
    page = body(olga, f"/exports/{failed().pk}/")
    for told in ("12 tasks failed: access denied", "click Repair", "9f31c0aa", "orders/a b+c%2F#?.csv", r"bad\xff"):
        assert told in page
    assert "signalled_errors: 12" in page and "1 held back" in page
    assert f'href="/commits/{HEAD}/"' in page
    assert page.count("403 AccessDenied") == 1 and "no UTF-8" in page  # what is the same of all is said once
    assert '<span class="state bad">' in page and "</svg>Failed</span>" in page and "export-failed</td>" not in page
    assert 'id="export_repair"' in page and 'id="export_run"' not in page


def test_a_reason_that_all_files_share_is_said_once_without_their_addresses(olga: Client) -> None:
    export = an_export("failing", state="export-failed")
    run = a_run(export, phase="copy", outcome="export-failed", ended_at=NOW, failed=2)
    for key in ("a/1.csv", "b/2.csv"):
        detail = f"http://store answered 403 to put {export.path}/{key}. Grant it"
        ExportFailure.objects.create(run=run, key=key.encode(), reason="denied", detail=detail, at=NOW)
    page = body(olga, f"/exports/{export.pk}/")
    assert page.count("http://store answered 403 to put") == 1
    assert "http://store answered 403 to put these files. Grant it" in page


def test_an_export_whose_branch_was_deleted_offers_to_delete_it(olga: Client) -> None:
    export = an_export(gone="branch", gone_since=NOW, gone_looked_at=NOW, state="export-failed")
    page = body(olga, f"/exports/{export.pk}/")
    assert "Branch deleted at source" in page and f'href="/exports/{export.pk}/delete/"' in page
    assert 'id="export_repair"' not in page and 'id="export_run"' not in page and "Export another branch…" in page
    listed = body(olga, "/exports/")
    assert "– branch deleted" in listed and f'href="/exports/{export.pk}/delete/"' in listed


def test_commits_that_wait_for_a_first_export_are_counted(olga: Client) -> None:
    more = {"behind_of": f"{HEAD}:{OLD}", "behind_commits": 94, "current_ref": OLD, "state": "export-failed"}
    assert "94 commits since the last attempt" in body(olga, f"/exports/{an_export(**more).pk}/")


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({}, "New"),
        ({"paused": True}, "Paused"),
        ({"look_error": "no branch"}, "Unknown"),
        ({"state": "export-repaired"}, "Exporting"),
        (
            {
                "state": "exported-successfully",
                "last_success_ref": OLD,
                "continuous": False,
                "path_at_success": "s3://company-bucket/main",
            },
            "Exported once",
        ),
    ],
)
def test_every_state_has_its_word(olga: Client, more: dict[str, Any], word: str) -> None:
    assert f"</svg>{word}</span>" in body(olga, f"/exports/{an_export(**more).pk}/")


def test_a_run_that_goes_on_shows_how_far_it_is(olga: Client) -> None:
    export = an_export(state="in-progress")
    a_run(export, phase="copy", to_copy=100, to_delete=20, copied=50, deleted=10, skipped=3)
    page = body(olga, f"/exports/{export.pk}/")
    assert "63 of 120 files" in page and 'hx-trigger="every 3s' in page


def test_an_export_is_made_and_changed_on_the_page(lm: Deployment, olga: Client) -> None:
    lm.lake.commit(files={"a": b"1"})
    typed = {"region": "us-east-1", "repository": "lake", "branch": "main", "path": "s3://bucket/latest/"}
    wrong = olga.post("/exports/new/", typed | {"path": "nowhere", "patterns": "fine\n(open"})
    assert wrong.status_code == 400 and b"nowhere" in wrong.content and b"(open" in wrong.content
    assert b"is not a valid RE2 expression" in olga.post("/exports/new/", typed | {"patterns": "fine\n(open"}).content
    made = olga.post("/exports/new/", typed | {"patterns": "a/\r\n\r\nb/ ", "continuous": "on"})
    export = Export.objects.get()
    assert (made.status_code, made["Location"]) == (302, f"/exports/{export.pk}/")
    assert (export.path, export.patterns, export.continuous) == ("s3://bucket/latest", ["a/", "b/ "], True)
    assert olga.post("/exports/new/", typed).status_code == 409
    changed = olga.post(f"/exports/{export.pk}/edit/", {"path": "s3://bucket/other", "repository": "ignored"})
    export.refresh_from_db()
    assert (changed.status_code, export.path, export.repository, export.patterns) == (
        302,
        "s3://bucket/other",
        "lake",
        [],
    )


def test_clicks_do_what_they_say(lm: Deployment, olga: Client) -> None:
    lm.lake.commit(files={"a": b"1"})
    olga.post("/exports/new/", {"region": "us-east-1", "repository": "lake", "branch": "main", "path": "s3://bucket/x"})
    export = Export.objects.get()
    for verb, state in (("pause", ("", True)), ("resume", ("", False)), ("run", ("in-progress", False))):
        assert olga.post(f"/exports/{export.pk}/{verb}/").status_code == 302
        export.refresh_from_db()
        assert (export.state, export.paused) == state
    again = olga.post(f"/exports/{export.pk}/run/", headers={"HX-Request": "true"})
    assert b"in progress" in again.content
    assert body(olga, f"/exports/{export.pk}/delete/")
    assert olga.post(f"/exports/{export.pk}/delete/", {"reason": "no longer read"})["Location"] == "/exports/"
    assert olga.get(f"/exports/{export.pk}/").status_code == 404


def test_who_may_not_read_the_branch_sees_nothing(outsider: User) -> None:
    stranger = Client()
    stranger.force_login(outsider)
    export = an_export()
    assert "analytics" not in body(stranger, "/exports/")
    for path in ("", "edit/", "delete/"):
        assert stranger.get(f"/exports/{export.pk}/{path}").status_code == 404
    assert stranger.post(f"/exports/{export.pk}/run/").status_code == 404
    assert Client().get("/exports/").status_code == 302
