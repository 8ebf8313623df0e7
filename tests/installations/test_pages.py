"""The pages of installations: what they show, and what they never show."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from unittest import mock

import pytest
from django.test import Client

from core.errors import Unreachable
from core.installations.settings import Secrets
from deployment import config
from installations import refresh
from installations.models import Installation
from mirrors.models import Mirror
from rbac.models import User
from tests.mirrors.factories import make_installation
from tests.mirrors.harness import Deployment
from tests.mirrors.page_text import text

pytestmark = pytest.mark.django_db

MARS = "/installations/mars-1/"
TYPED = {
    "lakefs_endpoint": "http://lakefs.mars-1",
    "lakefs_access_key_id": "AKIAMARS",
    "served_by": "us-east-1",
    "store_access": "chain",
}
NEW = TYPED | {"region": "venus-1", "lakefs_secret_access_key": "the-secret-of-venus"}


def opened(client: Client) -> dict[str, str]:
    """The form as it is sent when nothing was typed."""
    page = client.get(f"{MARS}edit/").content.decode()
    found = {name: re.search(rf'name="{name}" value="([^"]*)"', page) for name in ("seen", "was")}
    return TYPED | {name: unescape(match[1]) for name, match in found.items() if match}


def test_the_list_shows_those_of_the_file_and_those_of_the_database(olga: Client, lm: Deployment) -> None:
    make_installation()
    shown = text(olga.get("/installations/"))
    assert "mars-1 database http://lakefs.mars-1 1.84.0" in shown
    assert "eu-west-1 configuration file" in shown and "1 mirror " in shown and "1 mirrored repository" in shown
    assert "None" not in shown


def test_the_list_asks_the_database_as_often_for_many_as_for_few(
    olga: Client, lm: Deployment, django_assert_max_num_queries: object
) -> None:
    for number in range(5):
        make_installation(f"mars-{number}")
    with django_assert_max_num_queries(14):  # type: ignore[operator]
        olga.get("/installations/")


def test_one_is_added_changed_and_deleted(olga: Client, lm: Deployment) -> None:
    told = olga.post("/installations/new/", NEW, follow=True)
    assert "venus-1 added" in text(told)
    assert Installation.objects.get().secrets() == Secrets("the-secret-of-venus")
    make_installation()
    form = opened(olga) | {"store_region": "mars"}
    assert "mars-1 saved" in text(olga.post(f"{MARS}edit/", form, follow=True))
    assert Installation.objects.get(region="mars-1").secrets() == Secrets("s")
    assert "mars-1 deleted" in text(olga.post(f"{MARS}delete/", follow=True))
    assert olga.get(MARS).status_code == 404


def test_one_is_tested_before_it_is_added_and_nothing_is_kept(olga: Client, lm: Deployment) -> None:
    typed = NEW | {"region": "venus-1", "lakefs_endpoint": "http://127.0.0.1:9", "test": "1"}
    live = {"HX-Request": "true", "HX-Target": "tested"}
    answer = olga.post("/installations/new/", typed, headers=live)
    said = text(answer)
    assert "The lakeFS of venus-1" in said and "<html" not in answer.content.decode()
    assert "the-secret-of-venus" not in answer.content.decode()
    assert not Installation.objects.exists() and olga.get("/installations/venus-1/").status_code == 404
    assert "Fix the following before the test" in text(
        olga.post("/installations/new/", typed | {"region": ""}, headers=live)
    )
    taken = text(olga.post("/installations/new/", typed | {"region": "us-east-1"}, headers=live))
    assert "has an installation 'us-east-1' already" in taken
    whole = olga.post("/installations/new/", typed)
    assert "Enter the secrets again" in text(whole) and "the-secret-of-venus" not in whole.content.decode()


def test_a_change_is_tested_before_it_is_saved_with_the_secrets_that_are_kept(olga: Client, lm: Deployment) -> None:
    make_installation()
    live, asked = {"HX-Request": "true", "HX-Target": "tested"}, list[str]()

    def trying(region: str, *_: Any) -> Any:
        lakefs = config.current().lakefs(region)
        asked.append(lakefs.keys.secret_access_key.reveal() if lakefs else "")
        return Unreachable("nobody answers"), []

    with mock.patch("installations.connection_test._find_out", trying):
        told = olga.post(f"{MARS}edit/", opened(olga) | {"store_region": "mars", "test": "1"}, headers=live)
        olga.post(f"{MARS}edit/", opened(olga) | {"lakefs_secret_access_key": "another", "test": "1"}, headers=live)
        elsewhere = opened(olga) | {"lakefs_endpoint": "http://evil.example", "test": "1"}
        refused = text(olga.post(f"{MARS}edit/", elsewhere, headers=live))
    assert told.status_code == 200 and asked == ["s", "another"]
    assert "secret" in refused
    assert Installation.objects.get().secrets() == Secrets("s") and Installation.objects.get().store_region != "mars"
    assert 'id="test"' in olga.get(f"{MARS}edit/").content.decode()


def test_who_may_not_add_one_tests_none(teammate: User, client: Client, lm: Deployment) -> None:
    client.force_login(teammate)
    live = {"HX-Request": "true", "HX-Target": "tested"}
    assert client.post("/installations/new/", NEW | {"test": "1"}, headers=live).status_code in (200, 403)
    assert not Installation.objects.exists()


def test_fields_are_folded_until_they_are_used(olga: Client, lm: Deployment) -> None:
    page = olga.get("/installations/new/").content.decode()
    assert page.count('<details class="more-settings">') == 3
    role = olga.post("/installations/new/", NEW | {"lakefs_endpoint": "nowhere", "store_role_arn": "arn:x"})
    assert role.content.decode().count('<details class="more-settings" open>') == 1


def test_a_form_that_comes_back_has_no_secret_in_it(olga: Client, lm: Deployment) -> None:
    answer = olga.post("/installations/new/", NEW | {"lakefs_endpoint": "nowhere"})
    assert answer.status_code == 400 and "is not a valid address" in text(answer)
    assert "the-secret-of-venus" not in answer.content.decode()


def test_of_two_who_edit_one_is_told_what_the_other_did(olga: Client, lm: Deployment) -> None:
    make_installation()
    mine = opened(olga) | {"proxy": "http://proxy:3128", "lakefs_secret_access_key": "typed"}
    olga.post(f"{MARS}edit/", opened(olga) | {"store_region": "theirs"})
    answer = olga.post(f"{MARS}edit/", mine)
    page = answer.content.decode()
    assert answer.status_code == 412 and "Store region: none → theirs" in text(answer)
    assert (
        'value="http://proxy:3128"' in page
        and 'value="theirs"' in page
        and "typed" not in re.findall('value="([^"]*)"', page)
    )


def test_one_is_tested_and_what_is_wrong_stands_first(olga: Client, lm: Deployment) -> None:
    shown = text(olga.post("/installations/us-east-1/test/", follow=True))
    assert "us-east-1 works, as far as it could be checked" in shown
    assert re.search(
        r"What the last test found.*Versioning of src is not enabled.*The lakeFS of us-east-1 is reachable", shown
    )
    lm.us.failing["server"] = Unreachable("nobody answers")
    assert "us-east-1 has problems" in text(olga.post("/installations/us-east-1/test/", follow=True))
    assert olga.post("/installations/us-east-1/test/", {"namespace": "nix"}).status_code == 400


def test_what_is_used_and_what_is_of_the_file_is_not_deleted(olga: Client, lm: Deployment) -> None:
    row = make_installation()
    Mirror.objects.update(region=row.region)
    assert "it is used by 1 mirror. Delete these first" in text(olga.get(f"{MARS}delete/"))
    assert olga.post(f"{MARS}delete/").status_code == 409
    assert olga.post("/installations/eu-west-1/delete/").status_code == 409
    assert olga.get("/installations/eu-west-1/edit/").status_code == 409


def test_a_row_that_cannot_be_opened_breaks_no_page(olga: Client, lm: Deployment) -> None:
    make_installation()
    Installation.objects.update(sealed="nonsense", version=2)
    refresh.read()
    assert "secrets unusable" in text(olga.get("/installations/"))
    assert "was not changed by LakeMirror" in text(olga.get(MARS))
    for page in ("/", "/mirrors/", "/mirrors/new/", "/exports/new/", "/jobs/"):
        assert olga.get(page).status_code == 200, page


def test_who_may_only_look_gets_no_buttons_and_is_refused(client: Client, teammate: User, lm: Deployment) -> None:
    make_installation()
    client.force_login(teammate)
    shown = text(client.get(MARS))
    assert "Edit" not in shown and "Test it now" not in shown
    for path, body in (("new/", NEW), ("mars-1/edit/", TYPED), ("mars-1/delete/", {}), ("mars-1/test/", {})):
        assert client.post(f"/installations/{path}", body).status_code == 403, path
