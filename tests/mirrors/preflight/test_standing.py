"""What the settings of a mirror ask for when they are switched on later: by call, page and command, then and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from core.errors import Denied
from core.installations.webhook_action import HOLD_FILE
from mirrors.models import Mirror
from rbac.models import User
from tests.api import MIRRORS, Api
from tests.cli.conftest import terminal_of
from tests.cli.speaking import Terminal
from tests.mirrors.harness import Deployment
from tests.mirrors.page_text import text

__all__ = ["terminal_of"]
pytestmark = pytest.mark.django_db
MIRROR = f"{MIRRORS}/lake-eu"
SETTINGS = "/mirrors/lake-eu/settings/"
HOLD = {"hold": [{"branches": "main"}]}
FOLLOW = {"object_replication": "managed", "follow_gc": True}


@pytest.fixture
def olga(owner: User) -> Client:
    browser = Client()
    browser.force_login(owner)
    return browser


def states(answer: Any) -> dict[str, str]:
    return {check["id"]: check["state"] for check in answer["checks"]}


def refuse_tags(lm: Deployment, patch: pytest.MonkeyPatch) -> None:
    def refused(*args: Any, **more: Any) -> Any:
        raise Denied("403: fs:ListTags")

    patch.setattr(lm.eu, "list_tags", refused)


def test_whoever_has_merges_held_later_hears_at_once_which_branches_lack_the_file(lm: Deployment, owner: User) -> None:
    api = Api(owner)
    assert api.call("PATCH", MIRROR, {"rpo_seconds": 60})[1]["checks"] == []
    status, told = api.call("PATCH", MIRROR, HOLD)
    assert (status, states(told)) == (200, {"source-hold-file": "warning"})
    assert "main" in told["checks"][0]["message"] and HOLD_FILE in told["checks"][0]["fix"]
    assert api.call("PATCH", MIRROR, HOLD)[1]["checks"] == [], "nothing was switched on"
    lm.lake.commit(files={HOLD_FILE: b"name: hold"})
    status, told = api.call("GET", f"{MIRROR}/preflight")
    assert (status, told["ok"], states(told)) == (200, True, {"source-hold-file": "ok"})
    assert api.call("PATCH", MIRROR, {"hold": []})[1]["checks"] == []
    assert api.call("GET", f"{MIRROR}/preflight")[1]["checks"] == []


def test_whoever_follows_the_garbage_collection_later_hears_which_right_is_missing(
    lm: Deployment, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    api, tags = Api(owner), ("source-right:fs:ListTags", "destination-right:fs:ListTags")
    refuse_tags(lm, monkeypatch)
    status, told = api.call("PATCH", MIRROR, FOLLOW)
    assert (status, states(told)) == (200, dict(zip(tags, ("ok", "failed"), strict=True)))
    assert Mirror.objects.get().follow_gc, "it is saved all the same: sweeps delete nothing until then"
    assert api.call("GET", f"{MIRROR}/preflight")[1]["ok"] is False
    monkeypatch.undo()
    status, told = api.call("PATCH", MIRROR, HOLD)
    assert states(told) == dict.fromkeys(tags, "ok") | {"source-hold-file": "warning"}


def test_a_source_that_does_not_answer_is_not_known(
    lm: Deployment, owner: User, olga: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mirror.objects.update(hold=[{"branches": "main", "copies": 1, "hold_seconds": 45, "when_late": "refuse"}])
    refuse = Denied("403")
    monkeypatch.setattr(lm.us, "get_repository", lambda *args: (_ for _ in ()).throw(refuse))
    told = Api(owner).call("GET", f"{MIRROR}/preflight")[1]
    assert (told["ok"], states(told)) == (False, {"source-hold-file": "unknown"})
    assert "1 of 1 check could not be made." in text(olga.get(f"{SETTINGS}?check=1"))


def test_who_may_only_look_may_not_have_it_checked(lm: Deployment, teammate: User, outsider: User) -> None:
    for user in (teammate, outsider):
        assert Api(user).call("GET", f"{MIRROR}/preflight")[0] == 403
    Mirror.objects.update(object_replication="managed", follow_gc=True)
    tom = Client()
    tom.force_login(teammate)
    page = tom.get(f"{SETTINGS}?check=1")
    assert page.status_code == 200 and "summary" not in page.context
    assert f"{SETTINGS}?check=1#checks" not in page.content.decode()


def test_the_page_of_settings_says_it_after_they_were_saved_and_when_somebody_asks(
    lm: Deployment, olga: Client
) -> None:
    page = olga.get(f"{SETTINGS}?check=1")
    assert "summary" not in page.context and 'id="checks"' not in page.content.decode()
    form = page.context["form"]
    given = {name: value for name, value in form.initial.items() if value not in (None, False)}
    answer = olga.post(SETTINGS, given | {"hold": "main"})
    assert (answer.status_code, answer["Location"]) == (302, f"{SETTINGS}?check=1#checks")
    shown = text(olga.get(answer["Location"]))
    assert "main) lacks" in shown and "1 of 1 check found something to do." in shown
    assert "Ready" not in shown and "In order" not in shown
    poll = olga.get(answer["Location"], headers={"HX-Request": "true", "HX-Target": "live"})
    assert "summary" not in poll.context, "both sides are not asked with each poll"
    quiet = olga.get(SETTINGS)
    assert "main) lacks" not in text(quiet) and f"{SETTINGS}?check=1" in quiet.content.decode()
    form = quiet.context["form"]
    given = {name: value for name, value in form.initial.items() if value not in (None, False)}
    assert olga.post(SETTINGS, given | {"rpo_seconds": "60"})["Location"] == SETTINGS


def test_the_commands_say_it_too(lm: Deployment, owner: User, terminal_of: Callable[[User], Terminal]) -> None:
    run = terminal_of(owner)
    done = run("mirror", "preflight", "lake-eu")
    assert (done.exit_code, "ask for no checks" in done.stdout) == (0, True)
    done = run("mirror", "edit", "lake-eu", "--hold", "main")
    assert (done.exit_code, "main) lacks" in done.stderr) == (0, True)
    done = run("mirror", "preflight", "lake-eu")
    assert (done.exit_code, "source-hold-file" in done.stdout) == (1, True)
