"""The settings of a mirror as a form, also when two people have it open."""

from __future__ import annotations

import re
from html import unescape
from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client

from audit.models import AuditEvent
from core.mirroring.doubt import pack
from db import clock
from mirrors.models import Mirror
from rbac.models import User
from tests.mirrors.factories import make_company
from tests.mirrors.page_text import text

pytestmark = pytest.mark.django_db(transaction=True)

SETTINGS = "/mirrors/analytics-eu/settings/"
TYPED = {
    "include": "*",
    "exclude": "",
    "depth": "etag",
    "content_sample": "1.0",
    "imported": "block",
    "repair_tampering": "report",
    "first_sync": "exact",
    "rpo_seconds": "",
}


@pytest.fixture
def company() -> dict[str, Mirror]:
    return make_company()


@pytest.fixture
def mirror(company: dict[str, Mirror]) -> Mirror:
    return company["analytics-eu"]


def hidden(page: str) -> dict[str, str]:
    found = {name: re.search(rf'name="{name}" value="([^"]*)"', page) for name in ("seen", "was")}
    return {name: unescape(match[1]) for name, match in found.items() if match}


def opened(client: Client) -> dict[str, str]:
    """The form as it is sent when nothing was typed."""
    return TYPED | hidden(client.get(SETTINGS).content.decode())


def test_what_is_saved_is_told_and_audited(olga: Client, mirror: Mirror) -> None:
    form = opened(olga) | {"rpo_seconds": "900", "tags": "on", "depth": "size", "repair_tampering": "auto"}
    answer = olga.post(SETTINGS, form, follow=True)
    assert "Settings saved, applying" in text(answer)
    mirror.refresh_from_db()
    assert (mirror.rpo_seconds, mirror.tags, mirror.depth, mirror.repair_tampering) == (900, True, "size", "auto")
    assert AuditEvent.objects.get(actor="olga").before["depth"] == "etag"
    assert 'value="900"' in answer.content.decode()


def test_a_form_that_nobody_touched_changes_nothing(olga: Client, mirror: Mirror) -> None:
    assert olga.post(SETTINGS, opened(olga)).status_code == 302
    assert not AuditEvent.objects.filter(actor="olga").exists()


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"rpo_seconds": "0"}, "rpo_seconds", "greater than or equal to 1"),
        ({"content_sample": "0"}, "content_sample", "from above 0 to 1"),
        ({"content_sample": "nan"}, "content_sample", "Enter a number"),
        ({"depth": "none"}, "depth", "Select a valid choice"),
        ({"exclude": "main"}, "include", "can't be excluded"),
    ],
)
def test_an_error_stands_beside_its_field(
    olga: Client, mirror: Mirror, change: dict[str, str], field: str, words: str
) -> None:
    answer = olga.post(SETTINGS, opened(olga) | {"on_unselect": "keep", "rpo_seconds": "77"} | change)
    page = answer.content.decode()
    assert answer.status_code == 400
    assert f'id="id_{field}_error"' in page and words in text(answer)
    mirror.refresh_from_db()
    assert mirror.rpo_seconds is None


def test_branches_that_fall_out_are_asked_about(olga: Client, mirror: Mirror) -> None:
    form = opened(olga) | {"exclude": "features*\nback*"}
    assert "id_on_unselect" not in olga.get(SETTINGS).content.decode()
    answer = olga.post(SETTINGS, form)
    assert answer.status_code == 400
    told = "2 branches would no longer be mirrored: backfill/2024-q4, features_v2"
    assert told in text(answer)
    assert 'id="id_on_unselect"' in answer.content.decode() and "features*" in answer.content.decode()
    assert olga.post(SETTINGS, form | {"on_unselect": "delete"}).status_code == 302
    mirror.refresh_from_db()
    assert mirror.selected == {"include": ["*"], "exclude": ["features*", "back*"]}
    assert mirror.branches.get(name="features_v2").delete_asked


def test_a_stale_form_says_what_changed_and_keeps_what_was_typed(olga: Client, mirror: Mirror) -> None:
    first, second = opened(olga), opened(olga)
    olga.post(SETTINGS, first | {"rpo_seconds": "900", "imported": "allow"})
    answer = olga.post(SETTINGS, second | {"rpo_seconds": "60", "exclude": "tmp-*"})
    page = answer.content.decode()
    assert answer.status_code == 412
    said = text(answer)
    assert "Nothing was saved: somebody has changed these settings" in said
    assert "Lag target, in seconds: none → 900" in said
    assert "Imported objects: Block: a commit that names them is not mirrored → Check them where they are" in said
    assert 'value="60"' in page and "tmp-*" in page
    assert '<option value="allow" selected' in page
    mirror.refresh_from_db()
    assert (mirror.rpo_seconds, mirror.imported) == (900, "allow")
    again = TYPED | hidden(page) | {"rpo_seconds": "60", "exclude": "tmp-*", "imported": "allow"}
    assert olga.post(SETTINGS, again).status_code == 302
    mirror.refresh_from_db()
    assert (mirror.rpo_seconds, mirror.imported, mirror.selected["exclude"]) == (60, "allow", ["tmp-*"])


HUGE = "0" * 400


@pytest.mark.parametrize(
    "was",
    [
        "",
        "[]",
        "{",
        "[" * 100_000,
        f'{{"rpo_seconds": 1{HUGE}}}',
        '{"rpo_seconds": {"a": 1}}',
        '{"include": 7}',
    ],
    ids=range(7),
)
def test_a_form_without_its_tag_is_stale_whatever_else_it_brings(olga: Client, mirror: Mirror, was: str) -> None:
    assert olga.post(SETTINGS, TYPED | {"rpo_seconds": "9", "was": was}).status_code == 412
    mirror.refresh_from_db()
    assert mirror.rpo_seconds is None


def webhook_of_the_command() -> tuple[str, str]:
    """The file, and what lakeFS needs in its environment."""
    out, told = StringIO(), StringIO()
    call_command("webhook", "us-east-1", "http://testserver", stdout=out, stderr=told)
    return re.sub(r"\s+", " ", out.getvalue()).strip(), told.getvalue().strip().rpartition(": ")[2]


def test_the_webhook_file_is_the_one_that_the_command_prints(olga: Client, mirror: Mirror) -> None:
    file, variable = webhook_of_the_command()
    page = text(olga.get(SETTINGS))
    assert "Bearer" in file and file in page and variable in page


def test_who_may_only_look_sees_settings_but_no_secret(teammate: User, client: Client, mirror: Mirror) -> None:
    file, variable = webhook_of_the_command()
    client.force_login(teammate)
    answer = client.get(SETTINGS)
    assert "<fieldset disabled>" in answer.content.decode()
    assert file in text(answer) and variable.partition("=")[2] not in answer.content.decode()
    assert client.post(SETTINGS, opened(client) | {"rpo_seconds": "5"}).status_code == 403


def test_branches_that_match_are_told_while_one_types(olga: Client, mirror: Mirror) -> None:
    assert "would be mirrored" in text(olga.get(SETTINGS))
    answer = olga.post(SETTINGS, {"include": "prcing-*"}, headers={"HX-Request": "true", "HX-Target": "matches"})
    assert "'prcing-*' matches no branch now" in text(answer) and "<html" not in answer.content.decode()
    wrong = olga.post(SETTINGS, {"include": "[a"}, headers={"HX-Request": "true", "HX-Target": "matches"})
    assert wrong.status_code == 200


def test_before_a_deeper_depth_is_saved_it_is_told_what_that_has_checked(
    olga: Client, teammate: User, client: Client, mirror: Mirror
) -> None:
    mirror.coverage.all().delete()
    assert "no branch moves until everything has been validated again that deep" in text(olga.get(SETTINGS))
    assert "before a branch moves again" not in text(olga.get(SETTINGS))
    figures = {"state": "complete", "depth": "etag", "entries": 4000, "looked_up": 1000, "bytes": 4_000_000}
    mirror.coverage.create(range_id="ab" * 32, checked_at=clock.now(), **figures)
    told = text(olga.get(SETTINGS))
    assert "about 1,000 objects are validated before a branch moves again. 976.6 KB are read for that." in told
    assert told.count("before a branch moves again") == 1
    figures |= {"entries": 3, "looked_up": 3, "bytes": 300}
    mirror.coverage.update(looked=pack(range(1000)))
    mirror.coverage.create(range_id="cd" * 32, checked_at=clock.now(), looked=pack([1, 2, 5000]), **figures)
    assert "about 1,001 objects are validated" in text(olga.get(SETTINGS)), "each object once"
    client.force_login(teammate)
    assert "before a branch moves again" not in text(client.get(SETTINGS))
