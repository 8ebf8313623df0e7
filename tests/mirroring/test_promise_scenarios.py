"""What was complete once is not complete for ever: the scenarios of loss and damage, by the numbers of
docs/promotion.md. No ref is made at, or moved to, a commit that is known to be damaged; one that stands there stays."""

from __future__ import annotations

from unittest import mock

import pytest

from core.mirroring.states import State
from jobs.models import Duty
from mirrors.models import Blocker, Coverage, Mirror, MirrorBranch, Repository
from mirrors.services import mirrors, waivers
from mirrors.services.rebuild import rebuild
from mirrors.services.settings import mirror_update
from mirrors.transitions import duties
from rbac.models import User
from tests.api import MIRRORS, Api
from tests.fakes import replicate
from tests.mirroring.test_scenarios import history, mirrored, point, read, there
from tests.mirrors.harness import NAMESPACE, Deployment, state_of
from tests.mirrors.kept import once
from tests.mirrors.promise import (
    age,
    an_hour_later,
    before_call,
    damage,
    give_back,
    lose,
    lose_at_source,
    missing,
    page,
    real_job,
    reset,
    run,
    unreadable,
    verify,
    whys,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def a(request: pytest.FixtureRequest, lm: Deployment) -> str:
    """A, which main points to at both sides."""
    return once(request, lm, lambda: mirrored(lm, a=b"1"))


@pytest.fixture
def c(request: pytest.FixtureRequest, lm: Deployment, a: str) -> str:
    """C, which was promoted and holds x."""
    return once(request, lm, lambda: mirrored(lm, x=b"1"))


@pytest.fixture
def d(request: pytest.FixtureRequest, lm: Deployment, c: str) -> str:
    """D, which was promoted after C, and does without x."""
    return once(request, lm, lambda: mirrored(lm, x=None, d=b"1"))


# --- damage, then a ref at it -----------------------------------------------------------------------------------------


def test_43_a_branch_at_a_damaged_commit_is_made_when_it_is_whole_again(lm: Deployment, c: str) -> None:
    x = damage(lm, c, "x")
    point(lm, "new", c)
    lm.work()
    assert (lm.head("new"), history("new")) == ("", [])
    with an_hour_later():
        assert (read("new").state, [thing.path for thing in read("new").blockers]) == (State.BLOCKED, ["x"])
    give_back(lm, x)
    assert (lm.head("new"), history("new")) == (c, [("first-promotion", "", c)])
    assert (read("new").state, unreadable(lm, "new")) == (State.UP_TO_DATE, [])


def test_44_the_source_goes_back_to_a_damaged_commit_and_the_branch_stays(lm: Deployment, c: str, d: str) -> None:
    x = damage(lm, c, "x")
    reset(lm, c)
    assert (lm.head(), history()[-1][2]) == (d, d)
    assert (read().state, read().rewound) == (State.DAMAGED, True)
    assert "x" in [thing.path for thing in read().blockers]
    give_back(lm, x)
    assert (lm.head(), history()[-1]) == (c, ("source-moved", d, c))
    assert read().state is State.UP_TO_DATE


@pytest.mark.parametrize("later", [False, True], ids=["a-new-tag", "tags-switched-on-later"])
def test_45_a_tag_at_a_damaged_commit_is_made_when_it_is_whole_again(
    lm: Deployment, c: str, d: str, owner: User, later: bool
) -> None:
    if not later:
        mirror_update(actor=owner, mirror=Mirror.objects.get(), changes={"tags": True})
        lm.work()
    x = damage(lm, c, "x")
    lm.lake.repository.tags["v1"] = c
    if later:
        mirror_update(actor=owner, mirror=Mirror.objects.get(), changes={"tags": True})
    lm.work()
    assert (there(lm).tags, history("v1")) == ({}, [])
    give_back(lm, x)
    assert (there(lm).tags, history("v1")) == ({"v1": c}, [("first-promotion", "", c)])


@pytest.mark.parametrize("how", ["new", "main"])
def test_46_what_both_sides_lost_is_not_shown_anew(lm: Deployment, c: str, d: str, how: str) -> None:
    before = history(how)
    lose_at_source(lm, c, "x")
    damage(lm, c, "x")
    lm.work()
    point(lm, how, c)
    lm.work()
    assert (lm.head(how), history(how)) == ("" if how == "new" else d, before)
    assert (read(how).state, read(how).reason_code) == (State.BLOCKED, "object_gone_at_source")


def test_47_a_damaged_ancestor_keeps_new_branches_away_and_the_old_one_says_so(lm: Deployment, c: str, d: str) -> None:
    x = damage(lm, c, "x")
    point(lm, "new", d)
    lm.work()
    assert (lm.head("new"), history("new"), lm.head()) == ("", [], d)
    assert (read().state, page().state) == (State.DAMAGED, State.DAMAGED)
    assert state_of(d).data == "complete", "its own data is whole"
    give_back(lm, x)
    assert (lm.head("new"), page().state) == (d, State.UP_TO_DATE)


@pytest.mark.parametrize("call", ["list_repositories", "put_commit_record"])
def test_48_what_is_found_lost_between_decision_and_call_stops_the_call(lm: Deployment, a: str, call: str) -> None:
    """Another worker finds it, and writes it down."""
    b = lm.lake.commit(files={"b": b"1"})
    lm.arrive()
    run(lm, "sense", "copy", "validate")
    assert state_of(b).data == "complete"

    def find() -> None:
        lose(lm, b, "b")
        age()
        run(lm, "validate", holder="worker-2")
        assert missing() == ["b"]

    with before_call(lm, call, find) as moves:
        run(lm, "promote")
    assert (moves, lm.head(), whys()) == ([], a, ["first-promotion"])
    lm.work()
    assert (lm.head(), [thing.path for thing in read().blockers]) == (a, ["b"])
    with an_hour_later():
        assert read().state is State.BLOCKED


def test_49_a_commit_that_was_passed_over_and_damaged_later_is_not_shown(lm: Deployment, a: str) -> None:
    b = lm.lake.commit(files={"x": b"1"})
    lm.work(1)
    mirrored(lm, x=None, c=b"1")
    assert (state_of(b).promoted_at, state_of(b).superseded_at is None) == (None, False)
    x = damage(lm, b, "x")
    point(lm, "new", b)
    lm.work()
    assert (lm.head("new"), [thing.path for thing in read("new").blockers]) == ("", ["x"])
    give_back(lm, x)
    assert (lm.head("new"), unreadable(lm, "new")) == (b, [])


def test_50_a_deeper_look_finds_wrong_bytes_and_the_source_goes_back_there(
    lm: Deployment, c: str, d: str, owner: User
) -> None:
    uri = f"{NAMESPACE}/{lm.lake.address_of(c, 'x')}"
    etag = lm.eu_store.head(uri)
    lm.eu_store.objects[uri] = b"2"
    mirror_update(actor=owner, mirror=Mirror.objects.get(), changes={"depth": "content", "content_sample": 1.0})
    plain = lm.eu_store.head
    with real_job(lm), mock.patch.object(lm.eu_store, "head", lambda asked: etag if asked == uri else plain(asked)):
        lm.work()
        verify(lm)
        assert (missing(), Blocker.objects.first().reason) == (["x"], "content-differs")
        reset(lm, c)
        assert (lm.head(), whys().count("source-moved")) == (d, 0)
        assert (read().state, read().rewound) == (State.DAMAGED, True)
        lm.eu_store.objects[uri] = b"1"
        lm.work()
    assert (lm.head(), history()[-1]) == (c, ("source-moved", d, c))


def test_51_a_commit_whose_waiver_was_taken_back_is_judged_by_what_it_lacks(
    lm: Deployment, c: str, d: str, owner: User
) -> None:
    x = damage(lm, c, "x")
    waiver = waivers.waiver_give(actor=owner, mirror=Mirror.objects.get(), commits=[c], reason="known")
    lm.work()
    reset(lm, c)
    assert lm.head() == d, "waived: nobody is shown it"
    waivers.waiver_withdraw(actor=owner, waiver=waiver)
    lm.work()
    assert (lm.head(), read().state) == (d, State.DAMAGED)
    give_back(lm, x)
    assert (lm.head(), history()[-1]) == (c, ("source-moved", d, c))


# --- mirrors that are made anew, beside others, and from the destination ----------------------------------------------


def test_52_a_mirror_that_is_made_again_over_its_old_place_trusts_nothing(lm: Deployment, c: str, owner: User) -> None:
    mirrors.mirror_delete(actor=owner, mirror=Mirror.objects.get())
    lm.work()
    assert not Mirror.objects.exists()
    x = lose(lm, c, "x")
    mirrors.mirror_create(
        actor=owner, source_repository="lake", name="lake-eu", region="eu-west-1", storage_namespace=NAMESPACE
    )
    lm.checked.clear()
    lm.work()
    assert lm.head() == lm.lake.repository.commits[c].parents[0], "the newest that is whole"
    assert (missing(), page().state is State.UP_TO_DATE) == (["x"], False)
    assert {one for one, _ in lm.checked} == {*lm.lake.files_of(c)[1:], *first_ranges(lm, c)}
    give_back(lm, x)
    assert (lm.head(), lm.torn()) == (c, [])


def first_ranges(lm: Deployment, commit: str) -> list[str]:
    """The ranges of all that a commit descends from."""
    found, ahead = list[str](), list(lm.lake.repository.commits[commit].parents)
    while ahead:
        record = lm.lake.repository.commits[ahead.pop()]
        ahead += record.parents
        found += lm.lake.files_of(record.id)[1:] if record.metarange_id else []
    return found


def test_53_a_certificate_proves_the_past_and_moves_no_ref(lm: Deployment, c: str) -> None:
    lm.work()
    x = lose(lm, c, "x")
    point(lm, "new", c)
    for model in (Duty, Mirror, Repository):
        model.objects.all().delete()
    list(rebuild(actor="system:tests", regions=["eu-west-1"]))
    assert (MirrorBranch.objects.get().certified, page().state is State.UP_TO_DATE) == (c, False)
    lm.work()
    assert (lm.head(), lm.head("new"), missing()) == (c, "", ["x"])
    assert (read().state, page().state) == (State.DAMAGED, State.DAMAGED)
    give_back(lm, x)
    assert (lm.head("new"), page().state) == (c, State.UP_TO_DATE)


def test_55_of_two_mirrors_that_share_ranges_only_the_damaged_one_falls(lm: Deployment, c: str) -> None:
    first = Mirror.objects.get()
    other = Mirror.objects.create(
        name="lake-two", source=first.source, region="eu-west-1", storage_namespace="s3://dst/two"
    )
    duties.ensure_mirror_duties(other)
    replicate(lm.us_store, lm.eu_store, to="s3://dst/two")
    lm.work()
    damage(lm, c, "x")
    point(lm, "new", c)
    lm.work()
    heads = {name: lm.eu.repositories[name].branches for name in ("lake-eu", "lake-two")}
    assert heads == {"lake-eu": {"main": c}, "lake-two": {"main": c, "new": c}}
    assert {row.mirror_id for row in Coverage.objects.exclude(state="complete")} == {first.pk}
    assert {row.mirror_id for row in Blocker.objects.all()} == {first.pk}


def test_56_everybody_is_told_of_the_damage_in_the_same_second(lm: Deployment, c: str, api: Api) -> None:
    lose(lm, c, "x")
    age()
    run(lm, "validate")
    commit = api.call("GET", f"{MIRRORS}/lake-eu/commits/{c}")[1]
    assert (commit["promotable"], [one["path"] for one in commit["blockers"]]) == (False, ["x"])
    regions = api.call("GET", f"/service/replication/v1/commits/{c}/regions")[1]
    assert {one["region"]: one["readable"] for one in regions["results"]} == {"us-east-1": True, "eu-west-1": False}
    branch = api.call("GET", f"{MIRRORS}/lake-eu/branches")[1]["results"][0]
    assert (branch["status"], branch["mirror_head"], branch["blockers_total"] > 0) == ("Damaged", c, True)
    mirror = api.call("GET", f"{MIRRORS}/lake-eu")[1]
    assert (mirror["status"], read().state) == ("Damaged", State.DAMAGED)
