"""Who names the settings that they saw doesn't overwrite what somebody else has chosen meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client

from mirrors.models import Mirror
from mirrors.services.settings_etag import etag_of
from rbac.models import User
from tests.api import MIRRORS
from tests.mirrors.harness import Deployment, deployment

pytestmark = pytest.mark.django_db(transaction=True)
ONE = f"{MIRRORS}/lake-eu"


@pytest.fixture
def lm() -> Iterator[Deployment]:
    with deployment() as made:
        made.add_mirror()
        yield made


@pytest.fixture
def olga(owner: User, lm: Deployment) -> Client:
    client = Client()
    client.force_login(owner)
    return client


def change(client: Client, body: dict[str, Any], if_match: str | None = None) -> HttpResponse:
    headers = {} if if_match is None else {"If-Match": if_match}
    return client.patch(ONE, body, content_type="application/json", headers=headers)


def test_the_tag_is_that_of_the_settings_and_not_of_the_state(olga: Client, lm: Deployment) -> None:
    before = olga.get(ONE)["ETag"]
    lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.work()
    assert olga.get(ONE)["ETag"] == before
    changed = change(olga, {"tags": True})
    assert changed["ETag"] == olga.get(ONE)["ETag"] != before
    assert olga.post(f"{ONE}/pause", content_type="application/json")["ETag"] not in (before, changed["ETag"])
    assert olga.post(f"{ONE}/resume")["ETag"] == changed["ETag"]


def test_of_two_who_saw_the_same_settings_one_changes_them(olga: Client) -> None:
    seen = olga.get(ONE)["ETag"]
    assert change(olga, {"paused": True}, seen).status_code == 200
    late = change(olga, {"imported": "allow"}, seen)
    assert late.status_code == 412
    assert "GET it again" in late.json()["message"]
    assert Mirror.objects.get().imported == "block"
    assert change(olga, {"imported": "allow"}, olga.get(ONE)["ETag"]).status_code == 200


def test_a_mirror_that_was_changed_meanwhile_is_not_deleted(olga: Client) -> None:
    seen = olga.get(ONE)["ETag"]
    change(olga, {"paused": True})
    assert olga.delete(ONE, headers={"If-Match": seen}).status_code == 412
    assert Mirror.objects.get().state != "deleting"
    assert olga.delete(ONE, headers={"If-Match": olga.get(ONE)["ETag"]}).status_code == 204


def test_a_mirror_that_was_made_anew_is_another_one(olga: Client, lm: Deployment) -> None:
    seen = etag_of(Mirror.objects.get())
    Mirror.objects.all().delete()
    lm.add_mirror()
    assert olga.delete(ONE, headers={"If-Match": seen}).status_code == 412


@pytest.mark.parametrize(
    ("if_match", "status"),
    [
        (None, 200),
        ("", 200),
        ("*", 200),
        ("{tag}", 200),
        ('"other", {tag}', 200),
        ('W/"weak",{tag}', 200),
        ('"other"', 412),
        ("W/{tag}", 412),
        ('W/"other", "more"', 412),
        ("unquoted", 400),
        ("'single'", 400),
        ('"open', 400),
    ],
)
def test_if_match_is_read_as_rfc_9110_says(olga: Client, if_match: str | None, status: int) -> None:
    given = if_match and if_match.format(tag=olga.get(ONE)["ETag"])
    assert change(olga, {"paused": True}, given).status_code == status
    assert Mirror.objects.get().paused == (status == 200)


def test_compression_leaves_the_tag_one_that_matches(olga: Client) -> None:
    plain, small = olga.get(ONE), olga.get(ONE, headers={"Accept-Encoding": "gzip"})
    assert small["Content-Encoding"] == "gzip"
    assert small["ETag"] == plain["ETag"]


def test_the_settings_are_compared_while_nobody_else_can_change_them(
    olga: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody is quicker between the search for the mirror and the change."""
    from mirrors.api import mirrors

    seen, find = olga.get(ONE)["ETag"], mirrors.find_mirror

    def find_slowly(repository: str, mirror_id: str) -> Mirror:
        found = find(repository, mirror_id)
        Mirror.objects.update(imported="allow")
        return found

    monkeypatch.setattr(mirrors, "find_mirror", find_slowly)
    assert change(olga, {"paused": True}, seen).status_code == 412
    assert olga.delete(ONE, headers={"If-Match": seen}).status_code == 412
