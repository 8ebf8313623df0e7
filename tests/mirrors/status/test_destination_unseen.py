"""What nobody could see at the destination for long is told as unknown, and as nothing else. Numbers are those of
docs/promotion.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from unittest import mock

import pytest
from django.db.models import F

from core.errors import Denied, LakeMirrorError, RemoteFailure
from core.mirroring.states import State
from db import clock
from jobs.models import Duty
from mirroring.promote.uncommitted import AGAIN_PER_ROUND, LOOKS_PER_ROUND, branches_to_look_at
from mirrors.models import Mirror, MirrorBranch, Promotion, Repository, SourceBranch
from mirrors.status.lag_panel import lag_panel
from mirrors.status.mirror import MirrorStatus, brief_statuses, mirror_status
from mirrors.status.tags import tag_readings
from mirrors.views.list import tell
from tests.fakes import FakeRepository
from tests.mirroring.test_found_by_breaking import age, change, mirrored
from tests.mirrors.harness import Deployment
from tests.mirrors.status.test_told_no_better import lags

pytestmark = pytest.mark.django_db(transaction=True)

REFUSED = Denied("403: not allowed")


def there(lm: Deployment) -> FakeRepository:
    return lm.eu.repositories["lake-eu"]


def page() -> MirrorStatus:
    return mirror_status(Mirror.objects.get())


def in_the_list() -> MirrorStatus:
    return brief_statuses(Mirror.objects.select_related("source"))[0]


def shown() -> list[str]:
    return [tag.status for tag in tag_readings(Mirror.objects.get(), amount=3)]


def hours_pass() -> None:
    """For those who have not seen the destination since."""
    earlier = timedelta(hours=5)
    Mirror.objects.update(
        destination_looked_at=F("destination_looked_at") - earlier, tags_unseen_since=F("tags_unseen_since") - earlier
    )
    MirrorBranch.objects.update(unlooked_since=F("unlooked_since") - earlier, looked_at=None)


def tagged(lm: Deployment) -> str:
    """A mirror that has the source's tag v1."""
    change(tags=True)
    commit = mirrored(lm, a=b"1")
    lm.lake.repository.tags["v1"] = commit
    lm.work(2)
    assert (there(lm).tags, shown()) == ({"v1": commit}, ["Up to date"])
    return commit


@pytest.mark.parametrize("error", [REFUSED, RemoteFailure("500")])
def test_175_branches_that_can_not_be_listed_are_unknown_after_a_while(lm: Deployment, error: LakeMirrorError) -> None:
    first = mirrored(lm, a=b"1")
    last = mirrored(lm, b=b"2")
    there(lm).branches["main"] = first  # by somebody
    with mock.patch.object(lm.eu, "list_branches", side_effect=error):
        lm.run(Duty.objects.get(kind="promote").pk)
        assert page().state is State.UP_TO_DATE  # a moment ago it was
        lm.work(4)
        refused = isinstance(error, Denied)
        assert page().reason_code == "promote_failed"
        assert page().state is (State.FAILED if refused else State.RETRYING)
        hours_pass()
        lm.work(2)
        for reading in (page(), in_the_list()):
            assert reading.reason_code == "destination_unreachable"
            assert reading.state is (State.FAILED if refused else State.UNKNOWN)
            assert error.message in reading.sentence
    lm.work(2)
    assert (lm.head(), page().state) == (last, State.UP_TO_DATE)


def test_175_who_manages_the_repository_has_not_seen_its_branches(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    hours_pass()
    lm.run(Duty.objects.get(kind="manage").pk)
    assert page().state is State.UNKNOWN
    lm.run(Duty.objects.get(kind="promote").pk)
    assert page().state is State.UP_TO_DATE


def test_176_a_branch_of_which_uncommitted_changes_can_not_be_told_is_unknown_after_a_while(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    there(lm).uncommitted.add("main")
    with mock.patch.object(lm.eu, "has_uncommitted", side_effect=REFUSED):
        for _ in range(2):
            MirrorBranch.objects.update(looked_at=None)
            lm.work(2)
        assert page().state is State.UP_TO_DATE
        hours_pass()
        lm.work(2)
        for reading in (page(), in_the_list()):
            assert (reading.state, reading.reason_code) == (State.UNKNOWN, "uncommitted_unknown")
            assert REFUSED.message in reading.sentence
    hours_pass()
    lm.work(1)
    assert page().state is State.TAMPERED
    assert not MirrorBranch.objects.exclude(unlooked_since=None, look_error="").exists()


def test_176_changes_that_can_not_be_undone_are_told(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    Mirror.objects.update(repair_tampering="auto")
    there(lm).uncommitted.add("main")
    with mock.patch.object(lm.eu, "drop_uncommitted", side_effect=REFUSED):
        for _ in range(3):
            MirrorBranch.objects.update(looked_at=None)
            lm.work(1)
        assert page().state is State.TAMPERED
    MirrorBranch.objects.update(looked_at=None)
    lm.work(1)
    assert page().state is State.UP_TO_DATE
    whys = Promotion.objects.filter(why__contains="somebody") | Promotion.objects.filter(why__contains="undone")
    assert list(whys.order_by("pk").values_list("why", flat=True)) == [
        "written-by-somebody",
        "uncommitted-changes-undone",
    ]


def test_176_looks_that_get_no_answer_are_repeated_soon_and_leave_the_others_their_turn(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    mirror, now = Mirror.objects.get(), clock.now()
    for number in range(40):
        silent = {"unlooked_since": now, "looked_at": now - timedelta(minutes=1)}
        answered = {"looked_at": now - timedelta(hours=1)}
        mirror.branches.create(name=f"b{number:02}", head="c", **(silent if number % 2 else answered))
    rows = branches_to_look_at(mirror)
    again = [row for row in rows if row.unlooked_since]
    assert (len(rows), len(again)) == (LOOKS_PER_ROUND, AGAIN_PER_ROUND)


def test_177_tags_that_can_not_be_listed_are_unknown_after_a_while(lm: Deployment) -> None:
    tagged(lm)
    there(lm).tags.clear()  # by somebody
    with mock.patch.object(lm.eu, "list_tags", side_effect=REFUSED):
        lm.work(2)
        assert page().state is State.UP_TO_DATE
        hours_pass()
        lm.work(3)
        assert shown() == ["Unknown"]
        for reading in (page(), in_the_list()):
            assert (reading.state, reading.reason_code) == (State.UNKNOWN, "tags_unseen")
            assert "the list of its tags: 403" in reading.sentence
        assert [branch.state for branch in page().branches] == [State.UP_TO_DATE]
    lm.work(3)
    assert (shown(), page().state) == (["Up to date"], State.UP_TO_DATE)


def test_177_uncommitted_changes_are_looked_for_although_tags_can_not_be_listed(lm: Deployment) -> None:
    tagged(lm)
    there(lm).uncommitted.add("main")
    MirrorBranch.objects.update(looked_at=None)
    with mock.patch.object(lm.eu, "list_tags", side_effect=REFUSED):
        lm.work(1)
        assert page().state is State.TAMPERED


def test_177_tags_that_were_not_followed_for_long_are_unknown_until_they_are_seen(lm: Deployment) -> None:
    tagged(lm)
    change(tags=False)
    lm.work(1)
    hours_pass()
    lm.work(1)
    assert page().state is State.UP_TO_DATE  # they are no matter of it
    change(tags=True)
    Repository.objects.update(tags_unseen_since=None)
    with mock.patch.object(lm.eu, "list_tags", side_effect=REFUSED):
        lm.work(1)
        assert (shown(), page().state) == (["Unknown"], State.UNKNOWN)
    lm.work(1)
    assert (shown(), page().state) == (["Up to date"], State.UP_TO_DATE)


def test_178_what_fails_more_often_hides_no_other_failure(lm: Deployment) -> None:
    head = mirrored(lm, a=b"1")
    with mock.patch.object(lm.eu, "has_uncommitted", side_effect=REFUSED):
        for _ in range(3):
            MirrorBranch.objects.update(looked_at=None)
            lm.run(Duty.objects.get(kind="promote").pk)
        lm.eu_store.down = Denied("403: every key")
        age(head, lm=lm)
        for _ in range(4):
            MirrorBranch.objects.update(looked_at=None)
            lm.work(1)
    failures = dict(Duty.objects.values_list("kind", "failures"))
    assert failures["promote"] > failures["validate"] > 2
    told = page()
    assert (told.state, told.reason_code) == (State.FAILED, "promote_failed")
    assert "Moving branches failed" in told.sentence and "Validation failed" in told.sentence


def test_213_a_tag_that_can_not_be_moved_is_told(lm: Deployment) -> None:
    tagged(lm)
    lm.lake.repository.tags["v1"] = mirrored(lm, b=b"1")
    with mock.patch.object(lm.eu, "delete_tag", side_effect=REFUSED):
        lm.work(5)
        for reading in (page(), in_the_list()):
            assert (reading.state, reading.reason_code) == (State.RETRYING, "promote_failed")
            assert "tag v1" in reading.sentence and REFUSED.message in reading.sentence
    lm.work(2)
    assert (page().state, shown()) == (State.UP_TO_DATE, ["Up to date"])


def test_213_a_branch_that_can_not_be_deleted_is_told(lm: Deployment) -> None:
    lm.lake.repository.branches["dev"] = mirrored(lm, a=b"1")
    lm.work(2)
    del lm.lake.repository.branches["dev"]
    lm.work(1)
    SourceBranch.objects.filter(name="dev").update(missing_since=clock.now() - timedelta(seconds=61))
    with mock.patch.object(lm.eu, "delete_branch", side_effect=REFUSED):
        lm.work(5)
        assert (page().state, page().reason_code) == (State.RETRYING, "promote_failed")
        assert "branch dev" in page().sentence and REFUSED.message in page().sentence
    lm.work(2)
    assert (list(there(lm).branches), page().state) == (["main"], State.UP_TO_DATE)


def test_214_a_mirror_that_nobody_checks_is_unknown_after_a_while(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    checks = Duty.objects.filter(kind="validate")
    checks.update(ended_at=clock.now() - timedelta(minutes=2))
    assert page().state is State.UP_TO_DATE
    checks.update(ended_at=clock.now() - timedelta(hours=5), failures=1, until=clock.now() + timedelta(seconds=30))
    assert page().state is State.UP_TO_DATE  # a long one is under way
    checks.update(until=clock.now() - timedelta(seconds=30), failures=0)  # whoever had it is gone
    for reading in (page(), in_the_list()):
        assert (reading.state, reading.reason_code) == (State.UNKNOWN, "not_checked")
        assert "othing has been validated for 5 h" in reading.sentence
        assert "up to date" not in reading.sentence
        assert (reading.caught_up, reading.lag) == (0, None)
        assert str(tell([reading])) == "0 of 1 mirror up to date; 1 is unknown."
    assert [branch.state for branch in page().branches] == [State.UNKNOWN]
    assert "what eu-west-1 has now is not known" in str(lag_panel(page()).loss_phrase)
    assert lags() == []
    lm.lake.commit(files={"b": b"1"})
    lm.run(Duty.objects.get(kind="sense").pk)
    assert (page().state, page().pending) == (State.UNKNOWN, 1)
    lm.arrive()
    lm.work(1)
    assert (page().state, page().caught_up) == (State.UP_TO_DATE, 1)


def _remove(lm: Deployment) -> None:
    lm.eu.repositories.pop("lake-eu")


def _open_to_all(lm: Deployment) -> None:
    there(lm).info = replace(there(lm).info, read_only=False)
    there(lm).tags.clear()


def _replace(lm: Deployment) -> None:
    there(lm).info = replace(there(lm).info, creation_date=1)
    there(lm).tags.clear()


def _pause(lm: Deployment) -> None:
    change(paused=True)
    there(lm).tags.clear()


def _freeze(lm: Deployment) -> None:
    Repository.objects.update(frozen_reason="another one")
    there(lm).tags.clear()


@pytest.mark.parametrize("what", [_remove, _open_to_all, _replace, _pause, _freeze])
def test_179_no_tag_is_up_to_date_while_nobody_looks_at_them(
    lm: Deployment, what: Callable[[Deployment], None]
) -> None:
    tagged(lm)
    what(lm)
    lm.work(3)
    assert shown() == ["Unknown"]


def test_179_no_tag_is_up_to_date_where_no_worker_looks_at_the_destination(lm: Deployment) -> None:
    tagged(lm)
    hours_pass()
    assert (shown(), page().state) == (["Unknown"], State.UNKNOWN)
