"""Where situations meet, no page, answer or metric tells what is better than the worst of them. Numbers are those of
docs/promotion.md."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.db.models import F

from console.metrics.prometheus import gauges
from console.overview.summary import is_within, matrix, tell
from core.errors import Denied
from core.mirroring.states import State
from db import clock
from mirrors.models import Commit, Measure, Mirror, MirrorBranch, Repository, SourceBranch
from mirrors.queries.gc_exposure import unreached_of
from mirrors.queries.unreplicated import losses_of
from mirrors.services.waivers import waiver_give
from mirrors.status.commit import read_commit
from mirrors.status.lag_panel import lag_panel
from mirrors.status.mirror import MirrorStatus, brief_statuses, mirror_status
from rbac.models import User
from tests.api import Api
from tests.cast import person
from tests.mirroring.test_found_by_breaking import age, change, lose, mirrored, uri_of
from tests.mirroring.test_own_files import another_store, run
from tests.mirrors.factories import Line, make_mirror, make_repository
from tests.mirrors.harness import NAMESPACE, Deployment

pytestmark = pytest.mark.django_db(transaction=True)

COMMITS = "/service/replication/v1/repositories/lake/mirrors/lake-eu/commits"
HOURS = timedelta(hours=5)


def page() -> MirrorStatus:
    return mirror_status(Mirror.objects.get())


def overview() -> str:
    return str(tell(brief_statuses(Mirror.objects.select_related("source")), [], [], [], others_need=0))


def reader() -> User:
    """Somebody who may look at everything."""
    return User.objects.filter(username="rea").first() or person("rea", "Viewers")


def lags() -> list[str]:
    """Samples of the lag of branches."""
    [gauge] = [gauge for gauge in gauges(reader()) if gauge.name.endswith("branch_lag_seconds")]
    return [line for line in gauge.text().splitlines() if not line.startswith("#")]


def said_of_loss() -> str:
    return str(lag_panel(page()).loss_phrase)


def source_unseen() -> None:
    Repository.objects.update(looked_at=F("looked_at") - HOURS)


def destination_unseen() -> None:
    Mirror.objects.update(destination_looked_at=F("destination_looked_at") - HOURS)


def damage(lm: Deployment, head: str, path: str = "a") -> None:
    lose(lm, head, path)
    age(head, lm=lm)
    lm.work(3)


def written_by_force(lm: Deployment) -> None:
    lm.eu.repositories["lake-eu"].uncommitted.add("main")
    MirrorBranch.objects.update(looked_at=None)
    lm.work(1)


def unselect_dev(lm: Deployment) -> tuple[str, str]:
    """The heads of main and of dev, which was mirrored and is kept as it was."""
    first = mirrored(lm, a=b"1")
    lm.lake.repository.branches["dev"] = first
    last = mirrored(lm, "dev", z=b"9")
    change(selected={"include": ["main"], "exclude": []})
    lm.work(2)
    assert {branch.name: branch.state for branch in page().branches}["dev"] is State.UNSELECTED
    return first, last


def waive(commit: str) -> None:
    with mock.patch("mirrors.services.waivers.rbac.require"):
        waiver_give(actor="system:tests", mirror=Mirror.objects.get(), commits=[commit], reason="old")


@pytest.mark.parametrize("aside", ["paused", "source"])
def test_193_damage_is_told_in_a_pause_and_while_the_source_is_not_seen(lm: Deployment, aside: str) -> None:
    head = mirrored(lm, a=b"1")
    if aside == "paused":
        change(paused=True)
    damage(lm, head)
    if aside == "source":
        source_unseen()
    for reading in (page(), brief_statuses([Mirror.objects.get()])[0]):
        assert (reading.state, reading.branches[0].state) == (State.DAMAGED, State.DAMAGED)
        assert ("Paused" if aside == "paused" else "so what it has now is not known") in reading.sentence
    assert "1 needs you" in overview()


def test_193_what_somebody_wrote_by_force_is_told_in_a_pause(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    written_by_force(lm)
    change(paused=True)
    lm.work(1)
    assert (page().state, page().reason_code) == (State.TAMPERED, "uncommitted_change")


def test_193_what_nobody_sees_any_more_at_the_destination_is_unknown(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    written_by_force(lm)
    destination_unseen()
    assert page().state is State.UNKNOWN


def test_194_in_a_pause_nobody_knows_what_waits_at_a_source_that_is_not_seen(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    change(paused=True)
    lm.work(1)
    assert ("Nothing waits" in page().sentence, page().lag) == (True, 0)
    source_unseen()
    assert (page().state, page().lag, lags()) == (State.PAUSED, None, [])
    assert "Nothing waits" not in page().sentence and "what it has now is not known" in page().sentence
    assert overview() == "0 of 1 mirror is within its target; 1 is unknown."


def _stop(lm: Deployment) -> None:
    lm.eu.repositories.pop("lake-eu")
    lm.work(1)


def _freeze(lm: Deployment) -> None:
    Repository.objects.update(frozen_reason="another one")


def _hide_destination(lm: Deployment) -> None:
    destination_unseen()


def _hide_source_tags(lm: Deployment) -> None:
    Mirror.objects.update(tags=True)
    Repository.objects.update(tags_unseen_since=clock.now() - HOURS)


def _damage(lm: Deployment) -> None:
    damage(lm, lm.head())


@pytest.mark.parametrize("what", [_stop, _freeze, _hide_destination, _hide_source_tags, _damage])
def test_194_no_lag_is_told_of_what_nobody_knows(lm: Deployment, what: Any) -> None:
    mirrored(lm, a=b"1")
    assert (len(lags()), page().lag) == (1, 0)
    what(lm)
    assert (lags(), page().lag, page().branches[0].lag) == ([], None, None)


def test_194_one_branch_that_is_not_proven_makes_the_worst_lag_unknown(lm: Deployment) -> None:
    lm.lake.repository.branches["dev"] = mirrored(lm, a=b"1")
    mirrored(lm, "dev", z=b"9")
    MirrorBranch.objects.filter(name="dev").update(proven=False)
    assert (page().state, page().lag, len(lags())) == (State.UNPROVEN, None, 1)
    assert overview() == "0 of 1 mirror is within its target; 1 is not proven."


def test_194_one_unknown_mirror_makes_the_worst_lag_between_two_regions_unknown() -> None:
    now = clock.now()
    for name in ("lake", "orders"):
        line = Line(make_repository(name, now=now), "main", now)
        line.reached(make_mirror(f"{name}-eu", line.repository, now=now), line.commit("first", ago=500))
    Repository.objects.filter(name="orders").update(looked_at=now - HOURS)
    readings = brief_statuses(Mirror.objects.select_related("source"))
    [(_, [(_, pair)])] = matrix(readings).rows
    assert pair is not None and (pair.number, pair.lag) == (2, None)
    assert [is_within(reading) for reading in readings] == [True, False]


def test_194_nothing_is_measured_of_what_nobody_knows(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    _stop(lm)
    Measure.objects.all().delete()
    run(lm, "promote")
    assert set(Measure.objects.values_list("lag_seconds", "backlog")) == {(None, None)}


def test_195_at_another_store_nothing_is_told_to_be_there(lm: Deployment, teammate: User) -> None:
    head = mirrored(lm, a=b"1")
    with another_store():
        assert (page().lag, lags()) == (None, [])
        assert overview() == "0 of 1 mirror is within its target; 1 is not proven."
        assert "1 branch shows a commit that is not known to be complete" in said_of_loss()
        mirror = Mirror.objects.select_related("source").get()
        assert unreached_of(mirror).at_least
        assert "checked" not in str(read_commit(mirror, Commit.objects.get(sha=head), clock.now()).explanation)
        _, answer = Api(teammate).call("GET", COMMITS)
        assert {line["promotable"] for line in answer["results"]} == {False}


def test_195_objects_that_arrived_at_the_old_store_are_not_known_to_be_at_the_new_one(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    lm.lake.commit("main", {"b": b"2"})
    lm.arrive()
    run(lm, "sense", "copy", "validate")
    assert losses_of(Mirror.objects.get(), "", 10).together.missing.objects == 0
    with another_store():
        assert losses_of(Mirror.objects.get(), "", 10).together.missing.objects is None


@pytest.mark.parametrize("what", [_stop, _hide_destination])
def test_195_what_the_destination_has_lost_is_not_told_to_be_there(lm: Deployment, what: Any) -> None:
    mirrored(lm, a=b"1")
    assert "nobody knows" not in said_of_loss()
    what(lm)
    assert "what eu-west-1 has now is not known" in said_of_loss()


def test_196_a_kept_branch_that_is_not_where_it_was_left_is_told(lm: Deployment) -> None:
    first, last = unselect_dev(lm)
    lm.eu.repositories["lake-eu"].branches["dev"] = first
    with mock.patch.object(lm.eu, "hard_reset_branch", side_effect=Denied("protected")):
        lm.work(2)
        for reading in (page(), brief_statuses([Mirror.objects.get()])[0]):
            assert (reading.state, reading.reason_code) == (State.TAMPERED, "moved_at_the_mirror")
    lm.work(2)
    assert (lm.head("dev"), page().state) == (last, State.UP_TO_DATE)


def test_196_a_kept_branch_whose_head_is_gone_at_both_sides_is_damaged(lm: Deployment) -> None:
    _, last = unselect_dev(lm)
    del lm.us_store.objects[uri_of(lm, last, "z").replace(NAMESPACE, "s3://src/lake")]
    damage(lm, last, "z")
    assert {branch.name: branch.state for branch in page().branches}["dev"] is State.DAMAGED


def test_197_a_first_look_that_fails_is_told(lm: Deployment) -> None:
    with mock.patch.object(lm.us, "list_branches", side_effect=Denied("403: not allowed")):
        lm.work(3)
        assert (page().state, page().reason_code) == (State.RETRYING, "source_unreachable")
        assert "403: not allowed" in page().sentence
    mirrored(lm, a=b"1")
    assert page().state is State.UP_TO_DATE


def test_197_the_branches_of_an_adopted_mirror_are_not_gone_at_a_source_that_was_not_looked_at(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    SourceBranch.objects.all().delete()
    Repository.objects.update(looked_at=None)
    for proven, state in ((False, State.UNPROVEN), (True, State.UNKNOWN)):
        MirrorBranch.objects.update(position=-1, proven=proven)
        assert page().branches[0].state is state


def test_198_what_is_missing_of_waived_commits_would_be_lost_too(lm: Deployment) -> None:
    first = lm.lake.commit("main", {"a": b"1"})
    second = lm.lake.commit("main", {"a": None, "b": b"2"})
    lm.arrive(lm.lake.address_of(first, "a"))
    lm.work(2)
    waive(first)
    lm.work(2)
    assert (lm.head(), page().state) == (second, State.UP_TO_DATE)
    assert "1 waived commit is not known to be complete" in said_of_loss()


def test_198_older_commits_that_nobody_looks_for_may_be_lost_too(lm: Deployment) -> None:
    Mirror.objects.update(history="head")
    mirrored(lm, a=b"1")
    assert "the objects of older commits are not validated" in said_of_loss()


def test_199_what_the_source_may_collect_is_not_all_known_while_a_head_is_not_read(lm: Deployment) -> None:
    first = mirrored(lm, a=b"1")
    second = lm.lake.commit("main", {"b": b"2"})
    lm.arrive(lm.lake.address_of(second, "b"))
    lm.work(2)
    assert not unreached_of(Mirror.objects.get()).at_least
    lm.lake.repository.branches["main"] = first
    lm.lake.commit("main", {"c": b"3"})
    with mock.patch.object(lm.us, "log_commits", side_effect=Denied("403")):
        lm.work(2)
        assert unreached_of(Mirror.objects.get()).at_least
