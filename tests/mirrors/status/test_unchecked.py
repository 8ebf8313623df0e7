"""Where nobody has checked for long what the destination has, nothing that is said of it is good. Numbers are those of
docs/promotion.md."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import F

from console.exports_summary import Summary
from console.overview import summary
from core.mirroring.states import State
from core.text.phrases import sentence
from db import clock
from jobs.models import Duty
from mirrors.models import Coverage, Mirror, MirrorCommit
from mirrors.status.mirror import MirrorStatus, brief_statuses, mirror_status
from mirrors.status.readable_regions import places_of
from mirrors.transitions.proven_heads import unprove_heads
from mirrors.views.list import tell
from tests.mirroring.test_deletions import run
from tests.mirroring.test_found_by_breaking import change, lose
from tests.mirroring.test_tags import source_tags, states
from tests.mirrors.harness import Deployment
from tests.mirrors.transitions.test_selection import commit_only, mirrored

pytestmark = pytest.mark.django_db(transaction=True)


def page() -> MirrorStatus:
    return mirror_status(Mirror.objects.get())


def listed() -> MirrorStatus:
    return brief_statuses(Mirror.objects.select_related("source"))[0]


def nobody_checks(hours: int = 5) -> None:
    ago = clock.now() - timedelta(hours=hours)
    Duty.objects.filter(kind="validate").update(due_at=ago, ended_at=ago, until=None, holder="")


def test_214_a_long_check_that_just_ended_counts(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    checks = Duty.objects.filter(kind="validate")
    checks.update(due_at=clock.now())
    duty = checks.get()
    assert Duty.objects.claim(duty.pk, holder="w", lease=90, interval=60)
    duty.refresh_from_db()
    earlier = timedelta(hours=2)  # of a Spark job go by, with its lease renewed
    checks.update(due_at=F("due_at") - earlier, started_at=F("started_at") - earlier, ended_at=F("ended_at") - earlier)
    assert page().state is State.UP_TO_DATE
    assert Duty.objects.release(duty.pk, holder="w", attempt=duty.attempt, next_in=60)
    for reading in (page(), listed()):
        assert reading.state is State.UP_TO_DATE


def test_214_checks_whose_worker_is_killed_each_time_are_none(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    checks = Duty.objects.filter(kind="validate")
    checks.update(ended_at=clock.now() - timedelta(hours=5))
    for _ in range(3):
        checks.update(due_at=clock.now() - timedelta(seconds=1))
        assert Duty.objects.claim(checks.get().pk, holder="w", lease=30, interval=60)
        checks.update(until=clock.now() - timedelta(seconds=1))
    assert page().state is State.UNKNOWN


def test_214_tags_are_unknown_too(lm: Deployment) -> None:
    change(tags=True)
    source_tags(lm)["v1"] = mirrored(lm, a=b"1")
    lm.work(2)
    assert states() == {"v1": "Up to date"}
    nobody_checks()
    assert states() == {"v1": "Unknown"}


def test_214_a_branch_that_is_worse_off_makes_no_other_well(lm: Deployment) -> None:
    head = mirrored(lm, a=b"1")
    lm.lake.repository.branches["x"] = head
    lm.work(2)
    lm.eu.repositories["lake-eu"].branches["mine"] = head
    lm.work(2)
    nobody_checks()
    reading = page()
    assert (reading.state, reading.lag, listed().lag) == (State.TAMPERED, None, None)
    assert {(branch.state, branch.lag) for branch in reading.branches if branch.name != "mine"} == {
        (State.UNKNOWN, None)
    }
    assert "up to date" not in reading.sentence


def test_214_damage_does_not_make_the_lag_of_others_known(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    lm.lake.repository.branches["x"] = commit_only(lm, "x", b=b"2")
    lm.work(2)
    lose(lm, lm.head("x"), "b")
    Coverage.objects.update(verify_at=clock.now())
    run(lm, "validate")
    assert page().state is State.DAMAGED
    nobody_checks()
    told = {branch.name: (branch.state, branch.lag) for branch in page().branches}
    assert told["main"] == (State.UNKNOWN, None)


NO_EXPORTS = Summary(0, 0, (), sentence("none"))


def test_214_no_tile_says_that_nothing_is_missed(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    nobody_checks()
    told = {tile.name: tile.below for tile in summary.tiles([listed()], [], [], None, NO_EXPORTS, clock.now())}
    assert told["Missing or wrong"] == "as of the last check"


def test_214_a_commit_was_readable_when_that_was_checked(lm: Deployment) -> None:
    head = mirrored(lm, a=b"1")
    nobody_checks()
    mirror = Mirror.objects.select_related("source").get()
    [place] = [place for place in places_of([mirror], head)[1] if place.role == "mirror"]
    assert place.as_of is not None
    assert place.as_of < clock.now() - timedelta(hours=4)


def test_a_list_does_not_say_that_nothing_needs_you_of_a_mirror_that_is_not_proven(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    MirrorCommit.objects.update(data="unknown")
    unprove_heads(Mirror.objects.get())
    assert str(tell([listed()])) == "0 of 1 mirror up to date; 1 is not proven."
