"""What is copied on request ends with the request: also where somebody asks for something else at once, where a version
before was asked, and where the mirror is managed for a while."""

from __future__ import annotations

from datetime import timedelta
from unittest import mock

import pytest

from core.exporting.deadline import Late
from db import clock
from jobs.lease import Lease
from mirroring.validate import bring_asked
from mirrors.models import Blocker, Mirror
from mirrors.services.backlog import bringing_stop
from mirrors.status.copying import on_request
from rbac.models import User
from tests.mirroring.test_bring_asked import bring, brought, interrupted, lake, waits_for
from tests.mirrors.harness import Deployment

__all__ = ["lake"]
pytestmark = pytest.mark.django_db


def test_what_is_stopped_is_not_begun_because_something_else_is_asked_for_right_after(
    lake: Deployment, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, (one, other) = waits_for(lake, "x", "y")
    bring(owner, addresses=[one])
    once = iter([True])

    def asked_otherwise() -> None:
        if next(once, False):
            bringing_stop(actor=owner, mirror=Mirror.objects.get())
            bring(owner, addresses=[other])

    with monkeypatch.context() as patched:
        interrupted(lake, patched, asked_otherwise)
    lake.work(3)
    assert brought(lake) == [other]
    assert Blocker.objects.get().address == one


def test_what_a_version_before_was_asked_for_is_told_and_can_be_stopped(lake: Deployment, owner: User) -> None:
    waits_for(lake, "x", "y")
    now = clock.now()
    Blocker.objects.update(bring_asked_at=now, look_at=now)
    with mock.patch.object(lake.mover(None), "bring", side_effect=Late):
        lake.work(1)
    told = on_request(Mirror.objects.get(), now)
    assert told is not None and (told.everything, told.missing) == (False, 2)
    assert bringing_stop(actor=owner, mirror=Mirror.objects.get()) == 2


def test_what_a_version_before_was_asked_for_lasts_a_day(lake: Deployment) -> None:
    waits_for(lake, "x")
    Blocker.objects.update(bring_asked_at=clock.now() - timedelta(hours=25), look_at=clock.now())
    lake.work(2)
    assert brought(lake) == []
    assert Blocker.objects.get().bring_asked_at is None
    assert Mirror.objects.get().bring_at is None


def test_a_round_that_has_not_heard_of_native_again_ends_nothing(lake: Deployment, owner: User) -> None:
    waits_for(lake, "x")
    bring(owner)
    Mirror.objects.update(object_replication="managed")
    before = Mirror.objects.get()
    Mirror.objects.update(object_replication="native")
    bring_asked.bring_asked(before, mock.MagicMock(Lease))
    assert Mirror.objects.get().bring_at is not None
    Mirror.objects.update(object_replication="managed")
    bring_asked.bring_asked(before, mock.MagicMock(Lease))
    assert Mirror.objects.get().bring_at is None
    assert Blocker.objects.get().bring_asked_at is None
