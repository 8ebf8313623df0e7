"""Held merges as they are told: by API, page, command, metrics, alert, and the statement of loss."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from core.errors import Throttled
from core.holding import MOST_HELD_OF_ONE, parse_policies, policies_of
from core.notifications.kinds import AlertKind
from db import clock
from mirrors.models import HeldMerge, Mirror, Repository
from mirrors.queries.certificates import describe, descriptor_bytes, parse_descriptor
from mirrors.services.holds.hold import slot
from notifications.conditions import observe
from rbac.models import User
from tests.api import MIRRORS, Api
from tests.cli.conftest import terminal_of
from tests.cli.speaking import Terminal
from tests.mirrors.harness import Deployment
from tests.mirrors.page_text import text

__all__ = ["terminal_of"]
pytestmark = pytest.mark.django_db
POLICY = {"branches": "main", "copies": 1, "hold_seconds": 45, "when_late": "refuse"}
SHA = "ab" * 32


@pytest.fixture
def olga(owner: User) -> Client:
    browser = Client()
    browser.force_login(owner)
    return browser


def a_hold(**fields: Any) -> HeldMerge:
    now = clock.now()
    given = {"branch": "main", "commit_id": SHA, "merge_source": "dev", "held_at": now, "until": now, "ended_at": now}
    return HeldMerge.objects.create(repository=Mirror.objects.get().source, **given | fields)


def test_held_merges_are_listed_by_call_page_and_command(
    lm: Deployment, owner: User, outsider: User, olga: Client, terminal_of: Callable[[User], Terminal]
) -> None:
    Mirror.objects.update(hold=[POLICY])
    a_hold(state="refused", detail="812 of 1,000 objects")
    a_hold(state="released", complete_in=["eu-west-1"], detail="complete")
    a_hold(state="ungated", merge_source="")
    status, page = Api(owner).call("GET", f"{MIRRORS}/lake-eu/held-merges")
    assert status == 200 and [row["state"] for row in page["results"]] == ["ungated", "released", "refused"]
    assert page["results"][1]["complete_in"] == ["eu-west-1"] and page["results"][1]["seen_at"] is None
    assert Api(outsider).call("GET", f"{MIRRORS}/lake-eu/held-merges")[0] == 403
    shown = text(olga.get("/mirrors/lake-eu/held/"))
    assert "Merges into main wait until 1 region has them, 45 s at most; then they are refused." in shown
    assert "812 of 1,000 objects" in shown and "came without a release" in shown
    assert "the branch was not seen there yet" in shown
    done = terminal_of(owner)("mirror", "held", "lake-eu")
    assert done.exit_code == 0 and "released" in done.stdout and SHA[:8] in done.stdout


def test_policies_are_set_by_call_command_and_form_and_kept_at_the_destination(
    lm: Deployment, owner: User, olga: Client, terminal_of: Callable[[User], Terminal]
) -> None:
    status, mirror = Api(owner).call("PATCH", f"{MIRRORS}/lake-eu", {"hold": [{"branches": "release-*"}]})
    assert (status, mirror["hold"]) == (200, [POLICY | {"branches": "release-*"}])
    assert Mirror.objects.get().held_since is not None
    done = terminal_of(owner)("mirror", "edit", "lake-eu", "--hold", "main:2:30:allow")
    assert done.exit_code == 0, done.output
    wanted = [{"branches": "main", "copies": 2, "hold_seconds": 30, "when_late": "allow"}]
    assert Mirror.objects.get().hold == wanted
    assert parse_descriptor(descriptor_bytes(describe(Mirror.objects.get()))).hold == wanted
    page = olga.get("/mirrors/lake-eu/settings/")
    assert "main copies=2 seconds=30 late=allow" in page.content.decode()
    form = page.context["form"]
    given = {name: value for name, value in form.initial.items() if value not in (None, False)}
    answer = olga.post("/mirrors/lake-eu/settings/", given | {"hold": "main\nrelease-* copies=3"})
    assert answer.status_code == 302, text(answer)
    assert [str(one) for one in policies_of(Mirror.objects.get().hold)] == [
        "main copies=1 seconds=45 late=refuse",
        "release-* copies=3 seconds=45 late=refuse",
    ]
    assert terminal_of(owner)("mirror", "edit", "lake-eu", "--no-hold").exit_code == 0
    assert (Mirror.objects.get().hold, Mirror.objects.get().held_since) == ([], None)


@pytest.mark.parametrize(
    "wrong",
    [
        "main",
        [{}],
        ["main"],
        [{"branches": ""}],
        [{"branches": "x" * 257}],
        [{"branches": "main", "copies": 0}],
        [{"branches": "main", "copies": True}],
        [{"branches": "main", "copies": 9}],
        [{"branches": "main", "hold_seconds": 601}],
        [{"branches": "main", "when_late": "perhaps"}],
        [{"branches": "main", "more": 1}],
        [{"branches": "main"}, {"branches": "main"}],
        [{"branches": f"b{n}"} for n in range(21)],
    ],
)
def test_wrong_policies_are_refused(lm: Deployment, owner: User, wrong: Any) -> None:
    status, answer = Api(owner).call("PATCH", f"{MIRRORS}/lake-eu", {"hold": wrong})
    assert (status, answer["field"]) == (400, "hold"), answer
    assert Mirror.objects.get().hold == []


def test_a_stored_policy_of_a_newer_version_is_read_as_far_as_it_is_known() -> None:
    [policy] = policies_of([parse_policies([{"branches": "main"}])[0] | {"newer": 1}])
    assert policy.stored() == POLICY


def test_the_statement_of_loss_names_a_release_whose_head_was_never_seen(lm: Deployment, owner: User) -> None:
    lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.work()
    a_hold(state="released", complete_in=["eu-west-1"])
    a_hold(state="released", complete_in=["ap-southeast-2"], commit_id="cd" * 32)
    a_hold(state="released", complete_in=["eu-west-1"], commit_id="ef" * 32, seen_at=clock.now())
    told = Api(owner).call("GET", f"{MIRRORS}/lake-eu/loss")[1]["not_counted"]
    named = [line for line in told if "was released" in line]
    assert len(named) == 1 and SHA[:8] in named[0] and "on your word alone" in named[0]


def test_an_ungated_head_opens_an_alert_for_a_day(lm: Deployment, owner: User) -> None:
    Mirror.objects.update(hold=[POLICY])
    row = a_hold(state="ungated")
    [trouble] = [one for one in observe(clock.now()).troubles if one.condition.kind is AlertKind.HEAD_UNGATED]
    assert trouble.mirror == Mirror.objects.get().pk and SHA[:8] in trouble.condition.sentence
    HeldMerge.objects.filter(pk=row.pk).update(held_at=clock.now() - timedelta(hours=25))
    assert AlertKind.HEAD_UNGATED not in {one.condition.kind for one in observe(clock.now()).troubles}


def test_metrics_count_them(lm: Deployment, owner: User) -> None:
    api = Api(owner)
    assert b"lakemirror_holds_total" not in api.client.get("/metrics", headers=api.headers).content
    Mirror.objects.update(hold=[POLICY])
    now = clock.now()
    a_hold(state="released", held_at=now - timedelta(seconds=3))
    a_hold(state="refused", held_at=now - timedelta(seconds=45))
    a_hold(state="ungated")
    told = api.client.get("/metrics", headers=api.headers).content.decode()
    where = 'source="lake",source_region="us-east-1"'
    assert f'lakemirror_holds_total{{{where},outcome="released"}} 1.0' in told
    assert f"lakemirror_ungated_heads_total{{{where}}} 1.0" in told
    assert "# TYPE lakemirror_hold_seconds histogram" in told
    assert f'lakemirror_hold_seconds_bucket{{{where},le="5"}} 1' in told
    assert f"lakemirror_hold_seconds_count{{{where}}} 2.0" in told


def test_the_merges_of_one_repository_never_keep_those_of_others_from_being_held(lm: Deployment) -> None:
    source, later = Mirror.objects.get().source, clock.now() + timedelta(minutes=1)
    other = Repository.objects.create(region="us-east-1", name="other", storage_namespace="s3://src/o", creation_date=1)
    for number in range(MOST_HELD_OF_ONE):
        a_hold(state="held", commit_id=f"{number:064x}", until=later, ended_at=None)
    with pytest.raises(Throttled, match="48 merges of lake are held already"), slot(source):
        pass
    with slot(other):
        pass
