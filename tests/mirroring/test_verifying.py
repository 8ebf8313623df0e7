"""Checking again what was complete: damage is found and told, nothing is demoted."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from unittest import mock

import pytest

from core.errors import Unreachable
from core.mirroring.states import State
from deployment import config
from jobs.models import Duty
from mirrors.models import Blocker, Coverage, Mirror, MirrorBranch, Run
from mirrors.status.mirror import mirror_status
from tests.mirrors.harness import NAMESPACE, Deployment, state_of

pytestmark = pytest.mark.django_db(transaction=True)


def age() -> None:
    """The time of every complete range has come."""
    Coverage.objects.filter(state="complete").update(verify_at=datetime.now(UTC) - timedelta(seconds=1))


def lose(lm: Deployment, commit: str, path: str) -> str:
    uri = f"{NAMESPACE}/{lm.lake.address_of(commit, path)}"
    lm.eu_store.hidden.add(uri)
    return uri


def test_coverage_is_checked_again_when_its_time_has_come(lm: Deployment, head: str) -> None:
    lm.work()
    assert lm.checked == []
    age()
    lm.work()
    assert [range_id for range_id, _ in lm.checked] == lm.lake.files_of(head)[1:]
    assert Coverage.objects.get().verify_at > datetime.now(UTC) + timedelta(days=5)
    assert Run.objects.filter(job="verify", outcome="done").count() == 1


def test_rows_without_a_date_go_by_their_age(lm: Deployment, head: str) -> None:
    Coverage.objects.update(verify_at=None)
    lm.work()
    assert lm.checked == []
    Coverage.objects.update(checked_at=datetime.now(UTC) - timedelta(days=8))
    lm.work()
    assert len(lm.checked) == 1


def test_the_age_is_configured(lm: Deployment) -> None:
    known = config.current()
    brief = replace(known, validator=replace(known.validator, reverify_after=timedelta(hours=4)))
    with mock.patch("mirroring.validate.run_check.config.current", lambda: brief):
        lm.lake.commit(files={"a": b"1"})
        lm.arrive()
        lm.work()
    row = Coverage.objects.get()
    assert timedelta(hours=3) <= row.verify_at - row.checked_at <= timedelta(hours=4)


def test_damage_is_told_and_the_branch_stays(lm: Deployment, head: str) -> None:
    lose(lm, head, "a")
    age()
    lm.work()
    blocker = Blocker.objects.get()
    assert (blocker.path, blocker.reason, blocker.damage) == ("a", "missing", True)
    assert lm.head() == head
    assert state_of(head).data == "waiting"
    assert not MirrorBranch.objects.get().proven
    reading = mirror_status(Mirror.objects.get())
    assert reading.state is State.DAMAGED
    assert reading.reason_code == "damaged"
    assert "complete before is missing or wrong in eu-west-1 now (a)" in reading.sentence
    assert f"main is damaged. Readers of {head[:8]} in eu-west-1 are affected: " in reading.sentence
    [main] = reading.branches
    assert (main.state, main.reason_code, main.lag) == (State.DAMAGED, "head_damaged", None)


def test_what_comes_back_ends_the_damage(lm: Deployment, head: str) -> None:
    lose(lm, head, "a")
    age()
    lm.work()
    lm.eu_store.hidden.clear()
    lm.work()
    assert not Blocker.objects.exists()
    assert Coverage.objects.get().state == "complete"
    assert MirrorBranch.objects.get().proven
    assert mirror_status(Mirror.objects.get()).state is State.UP_TO_DATE


def test_a_new_commit_that_needs_what_was_lost_waits_for_it(lm: Deployment, head: str) -> None:
    lose(lm, head, "a")
    age()
    lm.work()
    new = lm.lake.commit(files={"c": b"3"})
    held = {*lm.eu_store.hidden}
    lm.arrive()
    lm.eu_store.hidden = held
    lm.work()
    assert lm.head() == head
    assert state_of(new).data == "waiting"
    lm.eu_store.hidden.clear()
    lm.work()
    assert lm.head() == new


def test_a_new_commit_without_what_was_lost_waits_for_its_history(lm: Deployment, head: str) -> None:
    lose(lm, head, "a")
    age()
    lm.work()
    new = lm.lake.commit(files={"a": b"written anew"})
    held = {*lm.eu_store.hidden}
    lm.arrive()
    lm.eu_store.hidden = held
    lm.work()
    assert lm.head() == head
    assert (state_of(new).data, state_of(new).history) == ("complete", False)
    assert mirror_status(Mirror.objects.get()).state is State.DAMAGED
    lm.eu_store.hidden.clear()
    lm.work()
    assert lm.head() == new
    assert mirror_status(Mirror.objects.get()).state is State.UP_TO_DATE


def test_a_new_commit_without_what_both_sides_have_lost_is_promoted(lm: Deployment, head: str) -> None:
    lost = lose(lm, head, "a")
    del lm.us_store.objects[lost.replace(NAMESPACE, lm.lake.namespace)]
    age()
    lm.work()
    new = lm.lake.commit(files={"a": b"written anew"})
    held = {*lm.eu_store.hidden}
    lm.arrive()
    lm.eu_store.hidden = held
    lm.work()
    assert (lm.head(), state_of(head).data) == (new, "gone")
    [main] = mirror_status(Mirror.objects.get()).branches
    assert main.state is State.UP_TO_DATE


def test_what_was_built_on_a_damaged_range_is_read_again(lm: Deployment, head: str) -> None:
    lm.lake.commit(files={"c": b"3"})
    lm.arrive()
    lm.work()
    first, second = Coverage.objects.order_by("pk")
    assert second.bases == [first.range_id]
    lose(lm, head, "a")
    Coverage.objects.filter(pk=first.pk).update(verify_at=datetime.now(UTC))
    lm.work(rounds=4)
    assert set(Blocker.objects.values_list("holder_id", flat=True)) == {first.range_id, second.range_id}
    second.refresh_from_db()
    assert (second.state, second.doubt, second.verify_at, second.problems) == ("waiting", "", None, 1)
    assert second.bases == [first.range_id]  # what it was checked on is known for good
    lm.eu_store.hidden.clear()
    lm.work(rounds=4)
    assert set(Coverage.objects.values_list("state", flat=True)) == {"complete"}


def test_each_range_is_verified_on_its_bases(lm: Deployment, head: str) -> None:
    lm.lake.commit(files={"c": b"3"})
    lm.arrive()
    lm.work()
    first, second = Coverage.objects.order_by("pk")
    Coverage.objects.filter(pk=first.pk).update(bases=[second.range_id])
    lm.checked.clear()
    age()
    lm.work()
    assert dict(lm.checked) == {first.range_id: [], second.range_id: [first.range_id]}


def test_a_range_file_that_is_lost_is_damage_until_it_is_back(lm: Deployment, head: str) -> None:
    range_id = lm.lake.files_of(head)[1]
    lm.eu_store.hidden.add(f"{NAMESPACE}/_lakefs/{range_id}")
    age()
    lm.work()
    assert Blocker.objects.get().reason == "range-missing"
    assert lm.head() == head
    lm.eu_store.hidden.clear()
    lm.work()
    assert not Blocker.objects.exists()
    assert Coverage.objects.get().state == "complete"


def test_what_the_source_collected_too_is_no_damage(lm: Deployment, head: str) -> None:
    new = lm.lake.commit(files={"a": b"newer"})
    lm.arrive()
    lm.work()
    lose(lm, head, "a")
    del lm.us_store.objects[f"s3://src/lake/{lm.lake.address_of(head, 'a')}"]
    age()
    lm.work()
    assert Coverage.objects.get(range_id=lm.lake.files_of(head)[1]).state == "gone"
    assert mirror_status(Mirror.objects.get()).state is State.UP_TO_DATE
    assert lm.head() == new


def test_a_head_that_stayed_behind_and_was_collected_at_both_sides_is_damaged_until_it_is_had_back(
    lm: Deployment, head: str
) -> None:
    """The mirror was paused for longer than the source's rules keep what its branch has left; replication brought the
    delete markers. Who takes these away again, has the objects back."""
    Mirror.objects.update(paused=True)
    lm.lake.commit(files={"a": b"newer"})
    lm.arrive()
    lm.work()
    lost = lose(lm, head, "a")
    kept = lm.us_store.objects.pop(lost.replace(NAMESPACE, lm.lake.namespace))
    age()
    lm.work()
    assert (lm.head(), state_of(head).data) == (head, "gone")
    [main] = mirror_status(Mirror.objects.get()).branches
    assert main.state is State.DAMAGED and "a" in [thing.path for thing in main.blockers]
    lm.eu_store.hidden.clear()
    assert lm.eu_store.objects[lost] == kept
    age()
    lm.work()
    [main] = mirror_status(Mirror.objects.get()).branches
    assert main.state is not State.DAMAGED


def test_damage_that_was_found_before_the_job_broke_off_counts(lm: Deployment, head: str) -> None:
    lm.lake.commit(files={"c": b"3"})
    lm.arrive()
    lm.work()
    first, second = Coverage.objects.order_by("pk")
    lose(lm, head, "a")
    Coverage.objects.filter(pk=first.pk).update(verify_at=datetime.now(UTC))
    whole = lm.run_check

    def breaking(mirror: Mirror, work: object, on_rows: object) -> None:
        whole(mirror, work, on_rows)
        raise Unreachable("away")

    with mock.patch("deployment.wiring.check_jobs.run_check", breaking):
        lm.work(rounds=1)
    second.refresh_from_db()
    assert (second.state, second.verify_at is not None) == ("waiting", True)


def test_a_round_checks_no_more_than_new_commits_can_wait_for(lm: Deployment, head: str) -> None:
    for number in range(3):
        lm.lake.commit(files={f"c{number}": b"3"})
        lm.arrive()
        lm.work()
    lm.checked.clear()
    age()
    with mock.patch("mirroring.validate.reverify.LOOKS", 1):
        lm.run(Duty.objects.get(kind="validate").pk)
        assert len(lm.checked) == 1
        assert Duty.objects.get(kind="validate").due_at <= datetime.now(UTC)
        lm.work(rounds=3)
    assert len(lm.checked) == 4


def test_a_store_that_is_away_says_nothing_of_damage(lm: Deployment, head: str) -> None:
    age()
    lm.check_error = Unreachable("away")
    with mock.patch("tests.mirrors.harness.check_plainly", lambda *_: []):
        lm.work(rounds=1)
    assert not Blocker.objects.exists()
    assert Coverage.objects.get().state == "complete"
    assert Duty.objects.get(kind="validate").failures == 1


def test_more_damage_than_is_kept_by_name_is_found_in_the_end(lm: Deployment, head: str) -> None:
    with (
        mock.patch("mirroring.validate.run_check.KEPT_PER_HOLDER", 1),
        mock.patch("mirroring.validate.doubt_new_coverage.KEPT_PER_HOLDER", 1),
        mock.patch("mirrors.transitions.range_states.KEPT_PER_HOLDER", 1),
    ):
        kept = lose(lm, head, "a")
        lose(lm, head, "b")
        age()
        lm.work()
        named = Blocker.objects.get(path="a") if Blocker.objects.count() == 1 else None
        lm.eu_store.hidden.discard(kept)
        lm.work()
        if named:
            assert Blocker.objects.get().path == "b"
        lm.eu_store.hidden.clear()
        lm.work()
    assert Coverage.objects.get().state == "complete"
    assert not Blocker.objects.exists()
