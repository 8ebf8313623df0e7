"""A mirror follows its source's garbage collection: what nobody needs goes a week later, and nothing else ever. The
numbers are those of docs/promotion.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.db import transaction
from django.db.models.functions import Now

from audit.models import AuditEvent
from core.errors import Conflict, Denied, Fenced, Invalid, Unreachable
from db import clock
from jobs.lease import Lease
from jobs.models import Duty
from mirroring.sweep import deletion_mark, deletions, look
from mirroring.sweep.deletion_mark import forget_compared
from mirroring.sweep.deletions import delete_due
from mirrors.models import Candidate, HeldMerge, Mirror, Repository, SourceBranch, Sweep
from mirrors.services.settings import mirror_update
from mirrors.services.sweeps import lists
from mirrors.services.sweeps.approval import sweep_approve, sweep_reject
from mirrors.services.sweeps.asking import sweep_now
from rbac.models import User
from tests.mirroring.swept import SOURCE, collect, follow, lies_here, pass_time, sweep
from tests.mirrors.harness import NAMESPACE, Deployment, state_of

pytestmark = pytest.mark.django_db
State = Sweep.State
LEFT_OVER = f"{NAMESPACE}/data/left-over"


@pytest.fixture
def lake(lm: Deployment) -> Deployment:
    """A mirror of main, and of etl, which somebody has deleted at the source; garbage was collected there since."""
    follow(lm, delete_percent=100)
    lm.lake.commit(files={"kept": b"kept", "also": b"also"})
    lm.us.create_branch("lake", "etl", lm.lake.repository.branches["main"])
    lm.lake.commit("etl", files={"tmp/1": b"one", "tmp/2": b"two"})
    lm.work()
    assert lm.torn() == []
    del lm.lake.repository.branches["etl"]
    lm.work()
    SourceBranch.objects.filter(name="etl").update(missing_since="2020-01-01T00:00:00Z")
    lm.work()
    assert "etl" not in lm.eu.repositories["lake-eu"].branches
    return lm


@pytest.fixture
def gone(lake: Deployment) -> list[str]:
    addresses = collect(lake)
    assert len(addresses) == 2
    return addresses


def twice(lake: Deployment) -> Sweep:
    """Two sweeps, a week apart."""
    sweep(lake)
    pass_time(lake)
    last = sweep(lake)
    assert last is not None
    return last


# --- when ---------------------------------------------------------------------------------------------------------


def test_239_somebody_may_have_it_looked_through_now_and_nothing_goes_sooner(
    lake: Deployment, gone: list[str], owner: User
) -> None:
    first = sweep(lake)
    assert first is not None
    pass_time(lake, timedelta(days=3))
    sweep_now(actor=owner, mirror=Mirror.objects.get())
    second = sweep(lake)
    assert second is not None and second.pk != first.pk
    assert (second.state, second.found, second.due, lake.remover.deleted) == (State.DONE, 2, 0, [])
    assert not Mirror.objects.get().sweep_asked
    assert sweep(lake) == second, "once"
    pass_time(lake, timedelta(days=4, seconds=1))
    sweep_now(actor=owner, mirror=Mirror.objects.get())
    third = sweep(lake)
    assert third is not None and (third.due, third.deleted) == (2, 2), "known for a week by now"
    mirror = Mirror.objects.get()
    assert (mirror.swept, mirror.swept_bytes) == (2, 6)
    event = AuditEvent.objects.filter(verb="sweep").latest("pk")
    assert (event.subject, event.after) == ("mirror/lake-eu", {"sweep": "lake-eu"})


def test_looking_more_often_deletes_no_more_without_approval(left_over: Deployment, owner: User) -> None:
    Mirror.objects.update(delete_most=1)
    pass_time(left_over, timedelta(days=-3))

    def look(after: timedelta) -> Sweep:
        pass_time(left_over, after)
        sweep_now(actor=owner, mirror=Mirror.objects.get())
        last = sweep(left_over)
        assert last is not None
        return last

    left_over.eu_store.objects[f"{NAMESPACE}/data/late"] = b"x"
    assert (look(timedelta()).found, left_over.remover.deleted) == (2, [])
    assert (look(timedelta(days=3)).deleted, left_over.remover.deleted) == (1, [LEFT_OVER])
    last = look(timedelta(days=4, seconds=1))
    assert (last.state, last.due, left_over.remover.deleted) == (State.WAITING, 1, [LEFT_OVER])
    assert last.reason == "1 object would be deleted, after 1 in the week before, more than 1"


def test_nor_does_looking_so_often_that_old_sweeps_are_forgotten(
    left_over: Deployment, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look, "KEPT_SWEEPS", 2)
    first = sweep(left_over)
    assert first is not None and first.deleted == 1
    for _ in range(4):
        sweep_now(actor=owner, mirror=Mirror.objects.get())
        last = sweep(left_over)
    assert last is not None and last.deleted_lately == 1
    pass_time(left_over)
    sweep(left_over)
    assert not Sweep.objects.filter(pk=first.pk).exists()


def test_what_was_in_doubt_is_looked_at_at_once(left_over: Deployment, owner: User) -> None:
    left_over.us_store.down = Unreachable("no answer")
    assert sweep(left_over).state == State.FROZEN
    left_over.us_store.down = None
    assert sweep(left_over).state == State.FROZEN, "an hour later"
    sweep_now(actor=owner, mirror=Mirror.objects.get())
    assert sweep(left_over).state == State.DONE


def test_not_now_is_said(left_over: Deployment, owner: User, teammate: User) -> None:
    mirror = Mirror.objects.get()
    with pytest.raises(Denied):
        sweep_now(actor=teammate, mirror=mirror)
    for change, why in (
        ({"follow_gc": False}, "does not follow"),
        ({"follow_gc": True, "paused": True}, "paused or stopped"),
        ({"paused": False, "copying_paused": True}, "paused or stopped"),
    ):
        Mirror.objects.update(**change)
        with pytest.raises(Conflict, match=why):
            sweep_now(actor=owner, mirror=mirror)
    Mirror.objects.update(copying_paused=False, delete_most=0)
    assert twice(left_over).state == State.WAITING
    with pytest.raises(Conflict, match="not through yet: waiting for approval"):
        sweep_now(actor=owner, mirror=mirror)


# --- what goes ------------------------------------------------------------------------------------------------------


def test_233_what_nobody_needs_goes_after_two_sweeps_a_week_apart(lake: Deployment, gone: list[str]) -> None:
    first = sweep(lake)
    assert first is not None
    assert (first.state, first.found, first.found_bytes, first.due) == (State.DONE, 2, 6, 0)
    assert all(lies_here(lake, address) for address in gone)
    assert sweep(lake) == first  # the next one is not due yet
    pass_time(lake)
    second = sweep(lake)
    assert second is not None and second.pk != first.pk
    assert (second.state, second.due, second.deleted, second.deleted_bytes) == (State.DONE, 2, 2, 6)
    assert not any(lies_here(lake, address) for address in gone)
    assert lake.torn() == []
    assert sorted(lake.remover.deleted) == [f"{NAMESPACE}/{address}" for address in gone]


def test_what_the_source_still_has_stays(lake: Deployment) -> None:
    assert twice(lake).found == 0
    assert lake.remover.deleted == []


def test_what_lies_there_without_ever_having_been_committed_goes_too(lake: Deployment) -> None:
    lake.eu_store.objects[f"{NAMESPACE}/data/left-over"] = b"x"
    assert (twice(lake).deleted, lake.remover.deleted) == (1, [f"{NAMESPACE}/data/left-over"])


def test_files_of_lakefs_and_of_our_own_stay(lake: Deployment) -> None:
    for key in ("_lakefs/unknown", "_lakemirror/unknown", "dummy"):
        lake.eu_store.objects[f"{NAMESPACE}/{key}"] = b"x"
    assert twice(lake).found == 0


def test_a_mirror_that_does_not_follow_it_is_not_swept(lake: Deployment, gone: list[str]) -> None:
    Mirror.objects.update(follow_gc=False)
    assert sweep(lake) is None
    assert all(lies_here(lake, address) for address in gone)


@pytest.mark.parametrize("settings", [{"paused": True}, {"copying_paused": True}, {"state": "stopped"}])
def test_nor_one_that_is_paused_or_stopped(lake: Deployment, gone: list[str], settings: dict[str, object]) -> None:
    sweep(lake)
    pass_time(lake)
    Mirror.objects.update(**settings)
    assert sweep(lake) == Sweep.objects.get()
    assert lake.remover.deleted == []


# --- what keeps it --------------------------------------------------------------------------------------------------


def back_at_the_source(lake: Deployment) -> None:
    lake.us.create_branch("lake", "again", sha_of(lake, "etl"))


def tagged(lake: Deployment) -> None:
    lake.us.create_tag("lake", "v1", sha_of(lake, "etl"))


def stray_here(lake: Deployment) -> None:
    lake.eu.create_branch("lake-eu", "stray", sha_of(lake, "etl"))


def candidate(lake: Deployment) -> None:
    branch = SourceBranch.objects.get(name="main")
    commit = branch.repository.commits.get(sha=sha_of(lake, "etl"))
    Candidate.objects.create(branch=branch, position=-5, commit=commit, seen_at=clock.now())


def held(lake: Deployment) -> None:
    HeldMerge.objects.create(
        repository=Repository.objects.get(),
        branch="main",
        commit_id=sha_of(lake, "etl"),
        held_at=clock.now(),
        until=clock.now() + timedelta(minutes=1),
    )


def unselected(lake: Deployment) -> None:
    back_at_the_source(lake)
    Mirror.objects.update(selected={"include": ["main"], "exclude": ["*"]})


def recorded(lake: Deployment) -> None:
    commit = Repository.objects.get().commits.get(sha=sha_of(lake, "etl"))
    Mirror.objects.get().commits.get_or_create(commit=commit)


def waived(lake: Deployment) -> None:
    commit = Repository.objects.get().commits.get(sha=sha_of(lake, "etl"))
    Mirror.objects.get().waivers.create(reason="r", given_by="olga", given_at=clock.now(), unneeded=[commit.pk])


def sha_of(lake: Deployment, message: str) -> str:
    """The commit of the branch that is no more."""
    heads = set(lake.lake.repository.branches.values())
    ahead, reached = list(heads), set(heads)
    while ahead:
        for parent in lake.lake.repository.commits[ahead.pop()].parents:
            reached.add(parent)
            ahead.append(parent)
    (sha,) = set(lake.lake.repository.commits) - reached
    return sha


KEEPERS: list[Callable[[Deployment], None]] = [
    back_at_the_source,
    tagged,
    stray_here,
    candidate,
    held,
    unselected,
    recorded,
    waived,
]


def test_235_what_somebody_may_need_is_kept_by_the_sweep(lake: Deployment, gone: list[str]) -> None:
    sweep(lake)
    pass_time(lake)
    for keep in KEEPERS:
        with undone(lake), mock.patch("mirroring.validate.commits.prune_commits"):
            keep(lake)
            sweep(lake)
            Mirror.objects.update(reselected=False)
            last = sweep(lake)
            assert last is not None and (last.state, last.found) == (State.DONE, 0), keep
    assert lake.remover.deleted == []


def test_235_and_right_before_it_goes(lake: Deployment, gone: list[str]) -> None:
    sweep(lake)
    pass_time(lake)
    with mock.patch("mirroring.validate.commits.delete_due", return_value=False):
        last = sweep(lake)
    assert last is not None and (last.state, last.due) == (State.DELETING, 2)
    for keep in KEEPERS:
        with undone(lake):
            keep(lake)
            last = sweep(lake)
            assert last is not None and (last.state, last.spared, last.deleted) == (State.DONE, 2, 0), keep
    assert lake.remover.deleted == []
    last = sweep(lake)
    assert last is not None and last.deleted == 2


@contextmanager
def undone(lake: Deployment) -> Iterator[None]:
    """What happens within is taken back, in the tables and outside."""
    kept = [deepcopy(one.__dict__) for one in (lake.us.repositories["lake"], lake.eu.repositories["lake-eu"])]
    objects = dict(lake.us_store.objects), dict(lake.eu_store.objects)
    point = transaction.savepoint()
    try:
        yield
    finally:
        transaction.savepoint_rollback(point)
        lake.us.repositories["lake"].__dict__.update(kept[0])
        lake.eu.repositories["lake-eu"].__dict__.update(kept[1])
        lake.us_store.objects.clear()
        lake.us_store.objects.update(objects[0])
        lake.eu_store.objects.clear()
        lake.eu_store.objects.update(objects[1])


def test_234_what_was_deleted_is_looked_for_when_a_branch_comes_to_need_it(lake: Deployment, gone: list[str]) -> None:
    """Its ranges were proven once: that counts no more."""
    old = sha_of(lake, "etl")
    assert twice(lake).deleted == 2
    lake.us.create_branch("lake", "again", old)
    lake.work(2)
    assert state_of(old).data in ("waiting", "gone")
    assert "again" not in lake.eu.repositories["lake-eu"].branches
    assert lake.torn() == []


# --- doubt ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def left_over(lm: Deployment) -> Deployment:
    """A mirror in whose namespace an object lies that nobody ever committed; a first sweep has found it a week ago."""
    follow(lm, delete_percent=100)
    lm.lake.commit(files={"kept": b"kept", "also": b"also"})
    lm.work(1)
    lm.eu_store.objects[LEFT_OVER] = b"x"
    sweep(lm)
    pass_time(lm)
    return lm


def another_mirror(lm: Deployment) -> None:
    place = {"region": "ap-southeast-2", "storage_namespace": f"{NAMESPACE}/below"}
    Mirror.objects.create(name="other", source=Repository.objects.get(), **place)


def another_repository(lm: Deployment) -> None:
    lm.eu.add_repository("other", NAMESPACE)


def unlisted_repositories(lm: Deployment) -> None:
    lm.eu.list_repositories = mock.Mock(side_effect=Denied("403"))  # type: ignore[method-assign]


def source_away(lm: Deployment) -> None:
    lm.us_store.down = Unreachable("no answer")


def source_refuses(lm: Deployment) -> None:
    lm.us_store.refused[f"{SOURCE}/data/left-over"] = Denied("403")


def source_emptied(lm: Deployment) -> None:
    lm.us_store.objects.clear()


def source_made_anew(lm: Deployment) -> None:
    info = lm.lake.repository.info
    lm.lake.repository.info = replace(info, creation_date=info.creation_date + 1)


def source_frozen(lm: Deployment) -> None:
    Repository.objects.update(frozen_reason="it was replaced")


def written_by_force(lm: Deployment) -> None:
    lm.eu.repositories["lake-eu"].uncommitted.add("main")
    Mirror.objects.get().branches.update(uncommitted=True)


def a_lost_range(lm: Deployment) -> None:
    (range_id,) = [name for name in lm.lake.files_of(lm.head()) if name != state_of(lm.head()).commit.metarange_id]
    for store, namespace in ((lm.us_store, SOURCE), (lm.eu_store, NAMESPACE)):
        del store.objects[f"{namespace}/_lakefs/{range_id}"]


DOUBTS = [
    another_mirror,
    another_repository,
    unlisted_repositories,
    source_away,
    source_refuses,
    source_emptied,
    source_made_anew,
    written_by_force,
    a_lost_range,
]


@pytest.mark.parametrize("doubt", DOUBTS, ids=lambda doubt: doubt.__name__)
def test_236_in_doubt_nothing_is_deleted_and_it_is_said_why(
    left_over: Deployment, doubt: Callable[[Deployment], None]
) -> None:
    first = Sweep.objects.get()
    doubt(left_over)
    for _ in range(2):
        left_over.run(Duty.objects.get(kind="sweep").pk)
        Mirror.objects.update(reselected=False)
    last = Sweep.objects.first()
    assert last is not None and last.pk != first.pk
    assert (last.state, bool(last.reason)) == (State.FROZEN, True), last.reason
    assert left_over.remover.deleted == []


def test_a_frozen_source_is_not_even_asked(left_over: Deployment) -> None:
    source_frozen(left_over)
    assert sweep(left_over) == Sweep.objects.get()


def test_once_the_doubt_is_over_it_goes_on(left_over: Deployment) -> None:
    source_away(left_over)
    left_over.run(Duty.objects.get(kind="sweep").pk)
    left_over.us_store.down = None
    assert sweep(left_over) == Sweep.objects.first()  # not within the hour
    pass_time(left_over, timedelta(hours=1))
    last = sweep(left_over)
    assert last is not None and (last.state, last.deleted) == (State.DONE, 1)
    assert not Sweep.objects.filter(state=State.FROZEN).exists()


RIGHT_BEFORE = [doubt for doubt in DOUBTS if doubt is not a_lost_range]


@pytest.mark.parametrize("doubt", RIGHT_BEFORE, ids=lambda doubt: doubt.__name__)
def test_236_nor_right_before_it_goes(left_over: Deployment, doubt: Callable[[Deployment], None]) -> None:
    looked(left_over)
    doubt(left_over)
    mirror = Mirror.objects.select_related("source").get(name="lake-eu")
    delete_now(left_over, mirror)
    last = Sweep.objects.first()
    assert last is not None and (last.state, bool(last.reason), last.deleted) == (State.FROZEN, True, 0)
    assert LEFT_OVER in left_over.eu_store.objects


def looked(lm: Deployment) -> None:
    """The second sweep has looked, and nothing was deleted yet."""
    for _ in range(2):
        lm.run(Duty.objects.get(kind="sweep").pk)
        Mirror.objects.update(reselected=False)
    assert Sweep.objects.filter(state=State.DELETING, due=1).exists()


def delete_now(lm: Deployment, mirror: Mirror) -> bool:
    """A slice of deletions, with the lease of the check."""
    duty = Duty.objects.get(kind="validate")
    Duty.objects.filter(pk=duty.pk).update(due_at=Now())
    assert Duty.objects.claim(duty.pk, holder="w", lease=60, interval=60)
    duty.refresh_from_db()
    return delete_due(mirror, Lease(duty, "w", duty.attempt))


@pytest.mark.parametrize(
    ("happens", "counted"),
    [
        (lambda lm: lm.us_store.objects.__setitem__(f"{SOURCE}/data/left-over", b"x"), "spared"),
        (lambda lm: lm.eu_store.objects.__setitem__(LEFT_OVER, b"another"), "spared"),
        (lambda lm: lm.remover.lately.add(LEFT_OVER), "spared"),
        (lambda lm: lm.remover.locked.add(LEFT_OVER), "locked"),
    ],
)
def test_what_changed_meanwhile_is_left(
    left_over: Deployment, happens: Callable[[Deployment], None], counted: str
) -> None:
    looked(left_over)
    happens(left_over)
    delete_now(left_over, Mirror.objects.get())
    last = Sweep.objects.get(state=State.DONE, due=1)
    assert (getattr(last, counted), last.deleted) == (1, 0)
    assert LEFT_OVER in left_over.eu_store.objects


def test_a_store_that_refuses_deletions_is_told(left_over: Deployment) -> None:
    looked(left_over)
    left_over.remover.refused[LEFT_OVER] = Denied("403: s3:DeleteObject")
    delete_now(left_over, Mirror.objects.get())
    last = Sweep.objects.first()
    assert last is not None and (last.state, last.reason) == (State.FROZEN, "403: s3:DeleteObject")


def test_a_list_that_somebody_changed_is_not_used(left_over: Deployment) -> None:
    looked(left_over)
    last = Sweep.objects.get(state=State.DELETING)
    mirror = Mirror.objects.get()
    lists.write_found(mirror, last, [])
    delete_now(left_over, mirror)
    last.refresh_from_db()
    assert last.state == State.FROZEN and "is not as it was written" in last.reason


def test_a_lease_that_was_lost_deletes_nothing(left_over: Deployment) -> None:
    looked(left_over)
    real = deletions._take_down_unkept

    def lose(*args: Any) -> bool:
        done = real(*args)
        Duty.objects.filter(kind="validate").update(holder="another")
        return done

    with mock.patch.object(deletions, "_take_down_unkept", lose), pytest.raises(Fenced):
        delete_now(left_over, Mirror.objects.get())
    assert LEFT_OVER in left_over.eu_store.objects


# --- approval -------------------------------------------------------------------------------------------------------


def test_237_more_than_a_share_waits_until_it_is_approved_and_then_just_that_goes(
    left_over: Deployment, owner: User
) -> None:
    Mirror.objects.update(delete_percent=10)
    last = sweep(left_over)
    assert last is not None and (last.state, last.reason) == (
        State.WAITING,
        "1 of 3 objects would be deleted, more than 10 %",
    )
    assert LEFT_OVER in left_over.eu_store.objects
    left_over.eu_store.objects[f"{NAMESPACE}/data/later"] = b"x"
    sweep_approve(actor=owner, mirror=Mirror.objects.get(), number=last.pk)
    last = sweep(left_over)
    assert last is not None and (last.state, last.deleted, last.decided_by) == (State.DONE, 1, "olga")
    assert LEFT_OVER not in left_over.eu_store.objects
    assert f"{NAMESPACE}/data/later" in left_over.eu_store.objects
    event = AuditEvent.objects.order_by("-pk")[0]
    assert (event.verb, event.after["sweep"], event.after["objects"]) == ("approve", last.pk, 1)
    with pytest.raises(Conflict, match="done, 1 object deleted"):
        sweep_approve(actor=owner, mirror=Mirror.objects.get(), number=last.pk)


def test_an_expired_list_is_not_approved_and_a_rejected_one_deletes_nothing(left_over: Deployment, owner: User) -> None:
    Mirror.objects.update(delete_percent=0)
    last = sweep(left_over)
    assert last is not None and last.state == State.WAITING
    pass_time(left_over)
    with pytest.raises(Conflict, match="has expired"):
        sweep_approve(actor=owner, mirror=Mirror.objects.get(), number=last.pk)
    newer = sweep(left_over)
    last.refresh_from_db()
    assert last.state == State.EXPIRED
    assert newer is not None and newer.state == State.WAITING
    sweep_reject(actor=owner, mirror=Mirror.objects.get(), number=newer.pk)
    last = sweep(left_over)
    assert last is not None and (last.state, last.deleted) == (State.REJECTED, 0)
    assert LEFT_OVER in left_over.eu_store.objects


def test_whoever_may_not_approve_is_refused(left_over: Deployment, teammate: User) -> None:
    Mirror.objects.update(delete_percent=0)
    last = sweep(left_over)
    assert last is not None
    with pytest.raises(Denied):
        sweep_approve(actor=teammate, mirror=Mirror.objects.get(), number=last.pk)


def test_turning_it_off_ends_what_waits(left_over: Deployment, owner: User) -> None:
    Mirror.objects.update(delete_percent=0)
    sweep(left_over)
    mirror = mirror_update(actor=owner, mirror=Mirror.objects.get(), changes={"object_replication": "native"})
    assert not mirror.follow_gc
    last = Sweep.objects.first()
    assert last is not None and last.state == State.ENDED
    assert not Duty.objects.filter(kind="sweep").exists()
    with pytest.raises(Invalid, match="needs managed"):
        mirror_update(actor=owner, mirror=mirror, changes={"follow_gc": True})


# --- what meets it ----------------------------------------------------------------------------------------------------


def test_bounds_that_are_lowered_while_it_looks_hold(left_over: Deployment, owner: User) -> None:
    real = lists.write_kept

    def lower(*args: Any) -> str:
        mirror_update(actor=owner, mirror=Mirror.objects.get(), changes={"delete_percent": 0})
        return real(*args)

    with mock.patch.object(lists, "write_kept", lower):
        last = sweep(left_over)
    assert last is not None and last.state == State.WAITING
    assert LEFT_OVER in left_over.eu_store.objects


def test_bounds_that_are_lowered_before_it_deletes_hold(left_over: Deployment, owner: User) -> None:
    looked(left_over)
    mirror_update(actor=owner, mirror=Mirror.objects.get(), changes={"delete_percent": 0})
    last = sweep(left_over)
    assert last is not None and (last.state, last.deleted) == (State.WAITING, 0)
    assert last.reason == "1 of 3 objects would be deleted, more than 0 %"
    sweep_approve(actor=owner, mirror=Mirror.objects.get(), number=last.pk)
    last = sweep(left_over)
    assert last is not None and (last.state, last.deleted) == (State.DONE, 1)


def test_a_list_that_was_lost_is_made_anew(left_over: Deployment) -> None:
    """Nothing is due by what nobody knows any more; a week later it is."""
    lists.write_found(Mirror.objects.get(), Sweep.objects.get(), [])
    last = sweep(left_over)
    assert last is not None and (last.state, last.found, last.due) == (State.DONE, 1, 0)
    Sweep.objects.exclude(pk=last.pk).delete()
    pass_time(left_over)
    last = sweep(left_over)
    assert last is not None and (last.state, last.deleted) == (State.DONE, 1)


def test_one_that_was_ended_while_it_deletes_deletes_nothing_more(left_over: Deployment, owner: User) -> None:
    looked(left_over)
    real = deletions.require_shown

    def switch(mirror: Mirror) -> None:
        for value in (False, True):
            mirror_update(actor=owner, mirror=Mirror.objects.get(), changes={"follow_gc": value})
        real(mirror)

    with mock.patch.object(deletions, "require_shown", switch), pytest.raises(Fenced):
        delete_now(left_over, Mirror.objects.get())
    assert LEFT_OVER in left_over.eu_store.objects


def test_uncommitted_changes_of_a_branch_that_nobody_noted_count_right_before_it_goes(left_over: Deployment) -> None:
    looked(left_over)
    left_over.eu.create_branch("lake-eu", "rescue", left_over.head())
    left_over.eu.repositories["lake-eu"].uncommitted.add("rescue")
    delete_now(left_over, Mirror.objects.get())
    assert LEFT_OVER in left_over.eu_store.objects


def test_the_history_of_a_branch_that_was_unselected_and_stays_is_kept(lm: Deployment, owner: User) -> None:
    follow(lm, delete_percent=100)
    lm.lake.commit(files={"kept": b"kept"})
    lm.us.create_branch("lake", "etl", lm.lake.repository.branches["main"])
    lm.lake.commit("etl", files={"tmp/1": b"one"})
    lm.lake.commit("etl", files={"tmp/1": b"two"})
    lm.work()
    assert lm.torn() == []
    mirror_update(actor=owner, mirror=Mirror.objects.get(), changes={"selected": {"include": ["main"], "exclude": []}})
    lm.work()
    addresses = collect(lm)
    assert len(addresses) == 1
    assert twice(lm).found == 0
    assert all(lies_here(lm, one) for one in addresses)


@pytest.mark.parametrize("duties", [("validate", "promote"), ("promote", "validate")])
def test_238_what_an_older_database_had_proven_of_what_was_deleted_counts_no_more(
    lake: Deployment, gone: list[str], duties: tuple[str, ...]
) -> None:
    """The database comes back from a backup that was made before the deletion."""
    old = sha_of(lake, "etl")
    sweep(lake)
    point = transaction.savepoint()
    pass_time(lake)
    last = sweep(lake)
    assert last is not None and last.deleted == 2
    transaction.savepoint_rollback(point)
    forget_compared()
    lake.us.create_branch("lake", "again", old)
    for kind in (*duties, "sense", *duties):
        for duty in Duty.objects.filter(kind=kind):
            lake.run(duty.pk)
    lake.work(3)
    assert lake.torn() == []
    assert "again" not in lake.eu.repositories["lake-eu"].branches
    assert state_of(old).data in ("waiting", "gone")
    assert lake.eu.repositories["lake-eu"].branches["main"] == lake.head()


def test_238_a_standby_that_lacks_the_last_deletion_is_no_better_believed_by_processes_that_go_on(
    lake: Deployment, gone: list[str]
) -> None:
    """The database's standby takes over, and lacks the last seconds; no process has seen the number it lost."""
    old = sha_of(lake, "etl")
    sweep(lake)
    pass_time(lake)
    point, seen = transaction.savepoint(), dict(deletion_mark._compared)
    last = sweep(lake)
    assert last is not None and last.deleted == 2
    transaction.savepoint_rollback(point)
    deletion_mark._compared.clear()
    deletion_mark._compared.update(seen)
    lake.us.create_branch("lake", "again", old)
    for kind in ("sense", "promote", "validate", "promote"):
        for duty in Duty.objects.filter(kind=kind):
            lake.run(duty.pk)
    lake.work(3)
    assert lake.torn() == []
    assert "again" not in lake.eu.repositories["lake-eu"].branches


def test_a_mark_of_the_source_that_is_a_mirror_too_says_nothing_of_this_one(lm: Deployment) -> None:
    """The stores' replication brings what the mirror that is the source here keeps below its own namespace."""
    head = lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.work(3)
    source = Mirror.objects.get()
    source.name, source.storage_namespace, source.facts_epoch = "lake-us", SOURCE, 7_000_000
    its_store = mock.patch.object(deletion_mark.clients, "objects", return_value=lm.us_store)
    with its_store, mock.patch.object(deletion_mark, "_epoch", return_value=source.facts_epoch):
        deletion_mark.leave_mark(source)
    lm.arrive()
    forget_compared()
    assert any("_lakemirror/sweeps/" in uri for uri in lm.eu_store.objects)
    for duty in Duty.objects.filter(kind="validate"):
        lm.run(duty.pk)
    assert Mirror.objects.get().facts_epoch < 1_000_000
    assert state_of(head).data == "complete"
