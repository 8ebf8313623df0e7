"""An object is waived for all commits that hold it, now or later: the scenarios by the numbers of docs/promotion.md."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from audit.models import AuditEvent
from core.errors import Conflict, Denied, Invalid, NotFound
from core.mirroring.states import State
from mirrors.models import Blocker, Coverage, Mirror, WaivedObject, Waiver
from mirrors.services.waivers import waiver_give, waiver_withdraw
from rbac.models import User
from tests.api import MIRRORS, Api
from tests.mirroring.test_scenarios import mirrored, point
from tests.mirrors.harness import NAMESPACE, Deployment, state_of
from tests.mirrors.page_text import text
from tests.mirrors.promise import page

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def x(lm: Deployment, owner: User) -> str:
    """The address of an object that does not arrive: B and C hold it, D does without. A is promoted."""
    mirrored(lm, a=b"1")
    b = lm.lake.commit(files={"x": b"1"})
    address = lm.lake.address_of(b, "x")
    lm.lake.commit(files={"c": b"1"})
    lm.lake.commit(files={"x": None, "d": b"1"})
    lm.arrive(address)
    lm.work()
    return address


def holding(lm: Deployment) -> list[str]:
    """The commits that hold x, parents first."""
    return [sha for sha in lm.lake.repository.commits if b"x" in lm.lake.trees.get(sha, {})]


def waive(address: str) -> Waiver:
    return waiver_give(
        actor=User.objects.get(username="olga"), mirror=Mirror.objects.get(), objects=[address], reason="never copied"
    )


def head_at_source(lm: Deployment) -> str:
    return lm.lake.repository.branches["main"]


def test_227_an_object_is_waived_for_all_commits_that_hold_it(lm: Deployment, x: str) -> None:
    assert lm.head() != head_at_source(lm)
    waive(x)
    lm.work()
    assert lm.head() == head_at_source(lm)
    b, c = holding(lm)
    assert [state_of(one).data for one in (b, c)] == ["gone", "gone"]
    reading = page()
    assert (reading.state, reading.waiting) == (State.UP_TO_DATE, 0)
    assert set(Blocker.objects.values_list("address", "waived")) == {(x, True)}


def test_228_it_holds_for_later_commits_too_and_none_is_a_head(lm: Deployment, x: str) -> None:
    waive(x)
    lm.work()
    _, c = holding(lm)
    point(lm, "old", c)
    lm.arrive(x)
    lm.work()
    later = lm.lake.commit("old", {"e": b"1"})
    lm.arrive(x)
    lm.work()
    assert (state_of(later).data, lm.head("old")) == ("gone", "")
    old = {branch.name: branch for branch in page().branches}["old"]
    assert (old.state, old.reason_code) == (State.BLOCKED, "object_waived")
    without = lm.lake.commit("old", {"x": None})
    lm.arrive(x)
    lm.work()
    assert (lm.head("old"), lm.head()) == (without, head_at_source(lm))


def test_229_once_it_arrives_they_are_complete_like_others(lm: Deployment, x: str) -> None:
    waive(x)
    lm.work()
    b, c = holding(lm)
    point(lm, "old", c)
    lm.arrive()
    lm.work()
    assert ([state_of(one).data for one in (b, c)], lm.head("old")) == (["complete", "complete"], c)
    assert (Blocker.objects.count(), lm.torn()) == (0, [])


def test_230_other_content_in_its_place_is_not_covered(lm: Deployment, x: str) -> None:
    waive(x)
    lm.work()
    was = lm.head()
    lm.arrive()
    lm.eu_store.put(f"{NAMESPACE}/{x}", b"something else")
    lm.work()
    new = lm.lake.commit(files={"f": b"1"})
    lm.arrive()
    lm.eu_store.put(f"{NAMESPACE}/{x}", b"something else")
    lm.work()
    b, c = holding(lm)
    assert ([state_of(one).data for one in (b, c)], lm.head()) == (["waiting", "waiting"], was)
    del lm.eu_store.objects[f"{NAMESPACE}/{x}"]
    lm.work()
    assert lm.head() == new


def test_231_withdrawing_moves_nothing_back(lm: Deployment, x: str) -> None:
    waiver = waive(x)
    lm.work()
    was = lm.head()
    waiver_withdraw(actor=User.objects.get(username="olga"), waiver=waiver)
    lm.lake.commit(files={"f": b"1"})
    lm.arrive(x)
    lm.work()
    assert (lm.head(), page().waiting) == (was, 1)
    assert not Blocker.objects.filter(waived=True).exists()
    lm.arrive()
    lm.work()
    assert lm.head() == head_at_source(lm)


def test_232_a_head_that_lacks_it_is_damaged_all_the_same(lm: Deployment, owner: User) -> None:
    c = mirrored(lm, x=b"1")
    address = lm.lake.address_of(c, "x")
    del lm.eu_store.objects[f"{NAMESPACE}/{address}"]
    Coverage.objects.update(verify_at="2020-01-01T00:00:00Z")
    lm.work()
    waive(address)
    lm.work()
    assert (page().state, lm.head(), state_of(c).data) == (State.DAMAGED, c, "gone")


def test_an_older_version_that_withdraws_leaves_nothing_that_counts(lm: Deployment, x: str) -> None:
    waive(x)
    lm.work()
    Waiver.objects.all()._raw_delete("default")
    lm.lake.commit(files={"f": b"1"})
    lm.arrive(x)
    lm.work()
    assert not Blocker.objects.filter(waived=True).exists()
    assert lm.head() != head_at_source(lm)
    waive(x)
    lm.work()
    assert (lm.head(), WaivedObject.objects.count()) == (head_at_source(lm), 1)


def test_what_an_older_version_noted_is_brought_in_step(lm: Deployment, x: str) -> None:
    waive(x)
    Blocker.objects.update(waived=False)
    lm.work()
    assert lm.head() == head_at_source(lm)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({}, Invalid),
        ({"objects": ["data/nobody-lacks-it"]}, NotFound),
        ({"objects": ["x"], "commits": ["0" * 64]}, Invalid),
    ],
)
def test_what_can_not_be_waived(lm: Deployment, x: str, given: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        waiver_give(actor=User.objects.get(username="olga"), mirror=Mirror.objects.get(), reason="?", **given)
    assert not Waiver.objects.exists()


def test_what_is_there_and_wrong_is_not_waived_as_missing(lm: Deployment, x: str) -> None:
    lm.arrive()
    lm.eu_store.put(f"{NAMESPACE}/{x}", b"something else")
    lm.work()
    with pytest.raises(Conflict, match="other content"):
        waive(x)


def test_the_api_gives_lists_and_withdraws_it(lm: Deployment, x: str, owner: User, outsider: User) -> None:
    api, waivers = Api(owner), f"{MIRRORS}/lake-eu/waivers"
    groups = api.call("GET", f"{MIRRORS}/lake-eu/blockers?group_by=object")[1]["results"]
    assert [(one["path"], one["address"], one["commits_total"], one["waived"]) for one in groups] == [
        ("x", x, 2, False)
    ]
    assert [one["id"] for one in groups[0]["commits"]] == holding(lm)[::-1]
    assert Api(outsider).call("POST", waivers, {"objects": [x], "reason": "why"})[0] == 403
    status, waiver = api.call("POST", waivers, {"objects": [x], "reason": "why"})
    assert (status, waiver["commits"], waiver["objects"]) == (201, [], [{"path": "x", "address": x}])
    event = AuditEvent.objects.get(after__waiver=waiver["id"])
    assert (event.actor, event.reason, event.after["objects"]) == (owner.username, "why", waiver["objects"])
    assert api.call("POST", waivers, {"objects": [x], "reason": "why"})[0] == 409
    lm.work()
    groups = api.call("GET", f"{MIRRORS}/lake-eu/blockers?group_by=object&address={x}")[1]["results"]
    assert [(one["commits_total"], one["waived"]) for one in groups] == [(2, True)]
    shown = Client()
    shown.force_login(owner)
    assert "1 object is waived: no longer waited for" in text(shown.get("/mirrors/lake-eu/backlog/"))
    told = api.call("GET", f"{MIRRORS}/lake-eu/commits/{lm.head()}/certificate")[1]["waivers"]
    assert [(one["given_by"], one["reason"], one["objects"]) for one in told] == [(owner.username, "why", [x])]
    assert api.call("DELETE", f"{waivers}/{waiver['id']}")[0] == 204
    assert not WaivedObject.objects.exists()


def test_who_may_not_change_the_source_waives_nothing(lm: Deployment, x: str, outsider: User) -> None:
    with pytest.raises(Denied):
        waiver_give(actor=outsider, mirror=Mirror.objects.get(), objects=[x], reason="why")
