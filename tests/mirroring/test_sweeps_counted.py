"""What a sweep has deleted counts for the bounds of the next ones, by when it was deleted and whatever became of it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from unittest import mock

import pytest
from django.db.models.functions import Now

from core.errors import LakeMirrorError, Unreachable
from core.exporting.deadline import Late
from db import clock
from jobs.lease import Lease
from jobs.models import Duty
from mirroring.sweep import look
from mirroring.sweep.deletions import delete_due
from mirrors.models import Mirror, Sweep
from mirrors.services.sweeps.approval import sweep_reject
from mirrors.services.sweeps.asking import sweep_now
from rbac.models import User
from tests.fakes import FakeRemover
from tests.mirroring.swept import follow, pass_time, sweep
from tests.mirrors.harness import NAMESPACE, Deployment

pytestmark = pytest.mark.django_db
State = Sweep.State
LEFT = [f"{NAMESPACE}/data/left-{number}" for number in (1, 2, 3)]


@pytest.fixture
def left(lm: Deployment) -> Deployment:
    """A mirror in whose namespace three objects lie that nobody ever committed. Two sweeps have found them, a week
    apart; nothing was deleted yet."""
    follow(lm, delete_percent=100)
    lm.lake.commit(files={"kept": b"kept", "also": b"also"})
    lm.work(1)
    lm.eu_store.objects |= dict.fromkeys(LEFT, b"x")
    sweep(lm)
    pass_time(lm)
    with mock.patch("mirroring.validate.commits.delete_due", return_value=False):
        last = sweep(lm)
    assert last is not None and (last.state, last.due) == (State.DELETING, 3)
    return lm


def now(lm: Deployment, owner: User) -> Sweep:
    """Somebody has a sweep made now."""
    sweep_now(actor=owner, mirror=Mirror.objects.get())
    last = sweep(lm)
    assert last is not None and last.state == State.DONE
    return last


def delete_once(lm: Deployment, meets: object) -> None:
    """A slice of deletions by a store that does so; its worker may be killed."""
    duty = Duty.objects.get(kind="validate")
    Duty.objects.filter(pk=duty.pk).update(due_at=Now())
    assert Duty.objects.claim(duty.pk, holder="w", lease=60, interval=60)
    duty.refresh_from_db()
    with mock.patch.object(FakeRemover, "delete", meets), suppress(SystemExit):
        delete_due(Mirror.objects.get(), Lease(duty, "w", duty.attempt))
    Duty.objects.filter(pk=duty.pk).update(holder="", until=None, due_at=Now())


def run_late(self: FakeRemover, uris: Sequence[str], seconds: float) -> dict[str, LakeMirrorError]:
    """Time is up after two deletions."""
    delete(self, uris[:2], seconds)
    raise Late


def killed(self: FakeRemover, uris: Sequence[str], seconds: float) -> dict[str, LakeMirrorError]:
    """The worker is killed after two deletions."""
    delete(self, uris[:2], seconds)
    raise SystemExit


def no_answer(self: FakeRemover, uris: Sequence[str], seconds: float) -> dict[str, LakeMirrorError]:
    """The store deletes two, and its answer is lost."""
    delete(self, uris[:2], seconds)
    return dict.fromkeys(uris, Unreachable("no answer"))


delete = FakeRemover.delete


def test_what_goes_after_a_pause_counts_from_then_on(left: Deployment, owner: User) -> None:
    pass_time(left, timedelta(days=20))  # it was paused
    sweep(left)
    assert Sweep.objects.get(due=3).deleted == 3
    pass_time(left, timedelta(days=6))
    assert now(left, owner).deleted_lately == 3
    pass_time(left, timedelta(days=2))
    assert now(left, owner).deleted_lately == 0


def test_what_a_version_before_deleted_counts_by_when_that_ended(left: Deployment) -> None:
    ago, day = clock.now() - timedelta(days=20), timedelta(days=1)
    mirror = Mirror.objects.get()
    for ended_at in (ago + 19 * day, ago):
        mirror.sweeps.create(pins="", state=State.DONE, began_at=ago, looked_at=ago, ended_at=ended_at, deleted=2)
    assert Sweep.objects.get(state=State.DELETING).deleted_lately == 2


@pytest.mark.parametrize("ends", [run_late, killed])
def test_what_went_before_time_was_up_is_counted(left: Deployment, owner: User, ends: object) -> None:
    delete_once(left, ends)
    first = Sweep.objects.get(state=State.DELETING)
    assert (len(left.remover.deleted), first.deleted) == (2, 0)
    last = sweep(left)
    assert last is not None and (last.state, last.deleted, last.tried) == (State.DONE, 3, 3)
    assert (Mirror.objects.get().swept, len(left.remover.deleted)) == (3, 3)
    assert now(left, owner).deleted_lately == 3


@pytest.mark.parametrize("ends", [run_late, killed])
def test_and_for_the_bounds_also_where_that_sweep_goes_no_further(
    left: Deployment, owner: User, monkeypatch: pytest.MonkeyPatch, ends: object
) -> None:
    delete_once(left, ends)
    Sweep.objects.filter(state=State.DELETING).update(state=State.ENDED, ended_at=clock.now())
    del left.eu_store.objects[LEFT[2]]
    monkeypatch.setattr(look, "KEPT_SWEEPS", 1)
    for _ in range(3):
        last = now(left, owner)
    assert last.deleted_lately == 3, "two are gone, and one was about to be"


def test_what_somebody_else_deleted_is_not_counted(left: Deployment) -> None:
    del left.eu_store.objects[LEFT[0]]
    delete_once(left, run_late)
    last = sweep(left)
    assert last is not None and (last.state, last.tried, last.deleted) == (State.DONE, 3, 2)


def test_where_the_answer_was_lost_the_store_is_asked_what_went(left: Deployment) -> None:
    delete_once(left, no_answer)
    last = Sweep.objects.get(state=State.DONE, due=3)
    assert (last.deleted, last.refused) == (2, 1)
    assert LEFT[2] in left.eu_store.objects


def test_what_went_of_a_sweep_that_was_rejected_later_counts_for_nobody_was_asked_about_it(
    left: Deployment, owner: User
) -> None:
    delete_once(left, run_late)
    Mirror.objects.update(delete_most=2)
    waiting = sweep(left)
    assert waiting is not None and waiting.state == State.WAITING
    sweep_reject(actor=owner, mirror=Mirror.objects.get(), number=waiting.pk)
    sweep_now(actor=owner, mirror=Mirror.objects.get())
    last = sweep(left)
    assert last is not None and (last.state, last.due, last.deleted) == (State.WAITING, 1, 0)
    assert LEFT[2] in left.eu_store.objects
