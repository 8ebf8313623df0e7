"""The scenarios of promotion that take several loops. Their numbers are those of docs/promotion.md."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import pytest
from django.db.models.functions import Now

from core.errors import RemoteFailure
from core.mirroring.promotion import MOVED_BY_OTHERS
from core.mirroring.states import State
from core.types import ObjectInfo
from jobs.models import Duty
from mirrors.models import Blocker, Candidate, Mirror, MirrorBranch, Promotion, Repository, SourceBranch
from mirrors.services.settings import mirror_update
from mirrors.status.mirror import BranchStatus, mirror_status
from rbac.models import User
from tests.mirrors.harness import Deployment, state_of
from tests.mirrors.kept import once

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def a(request: pytest.FixtureRequest, lm: Deployment) -> str:
    """A, which main points to at both sides."""
    return once(request, lm, lambda: mirrored(lm, a=b"1"))


def mirrored(lm: Deployment, branch: str = "main", **files: bytes) -> str:
    """A commit of the source, with everything of it at the mirror."""
    commit = lm.lake.commit(branch, files)
    lm.arrive()
    lm.work()
    assert lm.head(branch) == commit
    return commit


def point(lm: Deployment, branch: str, commit: str) -> None:
    """Point a branch of the source anywhere."""
    lm.lake.repository.branches[branch] = commit


def forget_branch(lm: Deployment, branch: str) -> None:
    """Delete a branch of the source, and let both looks go by."""
    del lm.lake.repository.branches[branch]
    lm.work(1)
    SourceBranch.objects.filter(name=branch).update(missing_since=datetime.now(UTC) - timedelta(seconds=61))
    lm.work()


def there(lm: Deployment) -> Any:
    """The mirror's repository at the destination."""
    return lm.eu.repositories["lake-eu"]


def read(name: str = "main") -> BranchStatus:
    """What the page says of a branch."""
    return next(branch for branch in mirror_status(Mirror.objects.get()).branches if branch.name == name)


def history(branch: str = "main") -> list[tuple[str, str, str]]:
    """The moves of a branch: why, from, to; the first one first."""
    rows = Promotion.objects.filter(branch=branch).order_by("pk")
    return list(rows.values_list("why", "from_commit", "to_commit"))


# --- history and data -------------------------------------------------------------------------------------------------


def test_4_an_object_that_only_an_ancestor_lacks_holds_its_descendants(lm: Deployment, a: str) -> None:
    b = lm.lake.commit(files={"x": b"old"})
    c = lm.lake.commit(files={"x": b"new"})
    held = lm.lake.address_of(b, "x")
    lm.arrive(held)
    lm.work()
    assert lm.head() == a
    assert (state_of(c).data, state_of(c).history) == ("complete", False)
    assert [blocker.address for blocker in read().blockers] == [held]
    lm.arrive()
    lm.work()
    assert lm.head() == c
    assert state_of(b).superseded_at is not None


def test_5_an_ancestor_whose_object_is_gone_at_both_sides_holds_nobody(lm: Deployment, a: str) -> None:
    b = lm.lake.commit(files={"x": b"old"})
    c = lm.lake.commit(files={"x": b"new"})
    del lm.us_store.objects[f"s3://src/lake/{lm.lake.address_of(b, 'x')}"]
    lm.arrive()
    lm.work(5)
    assert lm.head() == c
    assert (state_of(b).data, state_of(b).promoted_at) == ("gone", None)


def test_6_a_head_that_needs_what_neither_side_has_stays_away(lm: Deployment, a: str) -> None:
    c = lm.lake.commit(files={"x": b"lost"})
    del lm.us_store.objects[f"s3://src/lake/{lm.lake.address_of(c, 'x')}"]
    lm.arrive()
    lm.work(5)
    assert lm.head() == a
    assert (read().state, read().reason_code) == (State.BLOCKED, "object_gone_at_source")


def test_38_what_was_gone_for_an_ancestor_is_no_proof_for_a_head(lm: Deployment, a: str) -> None:
    """A's x is gone at both sides, B removes it, C reverts B: C's metarange is A's."""
    point(lm, "lost", a)
    x = lm.lake.commit("lost", {"x": b"1"})
    del lm.us_store.objects[f"s3://src/lake/{lm.lake.address_of(x, 'x')}"]
    b = lm.lake.commit("lost", {"x": None})
    lm.arrive()
    lm.work(5)
    assert lm.head("lost") == b
    c = lm.lake.record_tree((b,), lm.lake.trees[x], "revert")
    point(lm, "lost", c)
    lm.arrive()
    lm.work(5)
    assert (lm.head("lost"), state_of(c).data) == (b, "gone")


@pytest.mark.parametrize("selected", [True, False])
def test_7_8_and_9_a_merged_branchs_commits_are_history_but_no_candidates(
    lm: Deployment, a: str, selected: bool
) -> None:
    """Whether the merged branch is mirrored itself (row 7, 8) or is unknown to the mirror (row 9)."""
    point(lm, "feature", a)
    f1 = lm.lake.commit("feature", {"f": b"1"})
    f2 = lm.lake.commit("feature", {"f": b"2"})
    merged = lm.lake.merge("feature")
    if not selected:
        del lm.lake.repository.branches["feature"]
    held = f"_lakefs/{lm.lake.files_of(f1)[1]}"
    lm.arrive(held)
    lm.work()
    assert lm.head() == a
    assert [(blocker.kind, blocker.address) for blocker in read().blockers] == [("range", held)]
    lm.arrive()
    lm.work()
    assert (lm.head(), lm.head("feature")) == (merged, f2 if selected else "")
    assert not Candidate.objects.filter(branch__name="main", commit__sha__in=[f1, f2]).exists()


def test_40_all_records_of_both_sides_of_a_merge_are_copied_in_any_order_of_the_log(lm: Deployment, a: str) -> None:
    """The second side forks before the last synced commit, so the log may give known commits before unknown ones."""
    root = lm.lake.repository.commits[a].parents[0]
    b = mirrored(lm, b=b"1")
    point(lm, "side", root)
    sides = [lm.lake.commit("side", {"s": b"%d" % n}) for n in range(3)]
    merged = lm.lake.merge("side")
    del lm.lake.repository.branches["side"]
    lm.arrive()

    def known_first(commits: Any, head: str) -> list[str]:
        return [head, b, a, root, *sorted(sides)]

    with mock.patch.object(type(lm.us), "_walk", staticmethod(known_first)):
        lm.work()
    assert lm.head() == merged
    assert set(sides) <= there(lm).commits.keys()


def test_26_an_imported_object_holds_the_branch(lm: Deployment, a: str) -> None:
    c = lm.lake.commit(files={"x": b"1"})
    lm.arrive()
    plain = lm.run_check

    def check(mirror: Mirror, work: Any, on_rows: Callable[[Any], None]) -> None:
        problem = {"kind": "problem", "path": b"x", "size": 1, "etag": "", "detail": "", "reason": "imported"}
        tell = [problem | {"address": "s3://elsewhere/x", "range_id": range_id} for range_id, _ in work]
        plain(mirror, work, lambda rows: on_rows([*tell, *(row | {"problems": 1} for row in rows)] if rows else []))

    with mock.patch("deployment.wiring.check_jobs.run_check", check):
        lm.work()
    assert (lm.head(), state_of(c).data) == (a, "waiting")
    assert read().reason_code.startswith("object_imported")


def test_41_an_archived_object_holds_the_branch(lm: Deployment, a: str) -> None:
    c = lm.lake.commit(files={"x": b"1"})
    lm.arrive()
    key = f"lake/{lm.lake.address_of(c, 'x')}"
    plain = lm.eu_store.head

    def head(uri: str) -> ObjectInfo | None:
        found = plain(uri)
        return found._replace(storage_class="GLACIER") if found and found.key == key else found

    with mock.patch.object(lm.eu_store, "head", head):
        lm.work()
    assert (lm.head(), Blocker.objects.get().reason) == (a, "archived")
    assert "archived" in read().reason_code
    lm.work()
    assert lm.head() == c


def test_21_an_empty_repository_and_an_emptied_branch_are_complete_at_once(lm: Deployment) -> None:
    lm.work()
    root = lm.lake.repository.branches["main"]
    assert (lm.head(), lm.lake.repository.commits[root].metarange_id) == (root, "")
    assert there(lm).info.read_only
    mirrored(lm, a=b"1")
    emptied = lm.lake.commit(files={"a": None})
    lm.arrive()
    lm.work()
    assert (lm.head(), lm.lake.files_of(emptied)[1:]) == (emptied, [])


# --- branches that come, move and go ----------------------------------------------------------------------------------


def test_10_11_and_12_the_mirror_follows_a_rewind_once_its_head_is_complete(lm: Deployment, a: str) -> None:
    c = mirrored(lm, b=b"2")
    point(lm, "main", a)
    other = lm.lake.commit(files={"z": b"9"})
    lm.arrive(lm.lake.address_of(other, "z"))
    lm.work()
    assert lm.head() == c
    assert read().state is State.REWOUND
    lm.arrive()
    lm.work()
    assert history()[-1] == ("source-moved", c, other)
    point(lm, "main", a)
    lm.work()
    assert history()[-1] == ("source-moved", other, a)


def test_13_a_move_there_and_back_between_two_looks_is_none(lm: Deployment, a: str) -> None:
    lm.lake.commit(files={"d": b"1"})
    point(lm, "main", a)
    before = Promotion.objects.count()
    lm.work()
    assert (lm.head(), Promotion.objects.count()) == (a, before)


def test_15_and_16_a_branch_is_deleted_after_two_looks_a_minute_apart(lm: Deployment, a: str) -> None:
    point(lm, "dev", a)
    lm.work()
    del lm.lake.repository.branches["dev"]
    lm.work()
    assert lm.head("dev") == a
    SourceBranch.objects.filter(name="dev").update(missing_since=datetime.now(UTC) - timedelta(seconds=61))
    lm.work()
    assert (lm.head("dev"), lm.head()) == ("", a)
    assert history("dev")[-1] == ("deleted-at-source", a, "")


def test_17_a_branch_that_is_back_at_another_commit_was_moved(lm: Deployment, a: str) -> None:
    point(lm, "dev", a)
    dev = mirrored(lm, "dev", d=b"1")
    del lm.lake.repository.branches["dev"]
    lm.work(1)
    point(lm, "dev", a)
    lm.work()
    assert history("dev")[-1] == ("source-moved", dev, a)


def test_18_and_42_a_new_name_for_a_mirrored_commit_needs_no_job(lm: Deployment, a: str) -> None:
    point(lm, "old", a)
    lm.work()
    jobs = len(lm.checked)
    point(lm, "new", a)
    del lm.lake.repository.branches["old"]
    lm.work(1)
    assert (lm.head("new"), lm.head("old"), len(lm.checked)) == (a, a, jobs)
    point(lm, "old", a)
    forget_branch(lm, "old")
    assert (lm.head("new"), lm.head("old")) == (a, "")


def test_19_another_branch_than_the_default_one_waits_for_its_head(lm: Deployment, a: str) -> None:
    Mirror.objects.update(first_sync="inferred")
    point(lm, "dev", a)
    dev = [lm.lake.commit("dev", {"d": b"%d" % n}) for n in range(2)]
    lm.arrive(lm.lake.address_of(dev[1], "d"))
    lm.work()
    assert (lm.head("dev"), state_of(dev[0]).data) == ("", "complete")


def test_20_a_long_first_copy_waits_for_the_head_as_first_seen(lm: Deployment) -> None:
    commits = [lm.lake.commit() for _ in range(6)]
    lm.arrive(lm.lake.address_of(commits[5], "f5"))
    lm.work()
    assert (lm.head(), state_of(commits[4]).history) == ("", True)
    lm.arrive()
    lm.work()
    assert history() == [("first-promotion", "", commits[5])]


def test_20_a_long_first_copy_may_show_the_newest_complete_commit_of_its_line(lm: Deployment) -> None:
    Mirror.objects.update(first_sync="inferred")
    commits = [lm.lake.commit(files={"x": b"%d" % n}) for n in range(6)]
    for shown, held in [(2, commits[3:5]), (3, commits[4:5])]:
        lm.arrive(*(lm.lake.address_of(commit, "x") for commit in held))
        lm.work()
        assert (lm.head(), read().inferred) == (commits[shown], True)
    lm.arrive()
    lm.work(3)
    assert [(why, to) for why, _, to in history()] == [
        ("inferred", commits[2]),
        ("inferred", commits[3]),
        ("advanced", commits[5]),
    ]
    assert (read().state, read().inferred) == (State.UP_TO_DATE, False)
    assert not Candidate.objects.filter(position__lt=0).exists(), "nobody needs them any more"


def test_22_a_stuck_branch_delays_nobody(lm: Deployment, a: str) -> None:
    for n in range(20):
        point(lm, f"b{n}", a)
    heads = {f"b{n}": lm.lake.commit(f"b{n}", {"x": b"%d" % n}) for n in range(20)}
    lm.arrive(lm.lake.address_of(heads["b7"], "x"))
    lm.work()
    assert {name for name in heads if lm.head(name) != heads[name]} == {"b7"}


def test_28_after_a_pause_the_mirror_goes_straight_to_the_newest(lm: Deployment, a: str, owner: User) -> None:
    mirror_update(actor=owner, mirror=Mirror.objects.get(), changes={"paused": True})
    last = [lm.lake.commit() for _ in range(10)][-1]
    lm.arrive()
    lm.work()
    assert lm.head() == a
    assert state_of(last).data == "complete"
    mirror_update(actor=owner, mirror=Mirror.objects.get(), changes={"paused": False})
    lm.work()
    assert history()[-1] == ("advanced", a, last)


def test_34_dates_decide_nothing(lm: Deployment, a: str) -> None:
    lm.lake.clock += 86_400
    b = lm.lake.commit(files={"b": b"1"})
    lm.lake.clock -= 2 * 86_400
    c = lm.lake.commit(files={"c": b"1"})
    lm.arrive()
    lm.work()
    dates = lm.lake.repository.commits
    assert dates[b].creation_date > dates[c].creation_date
    assert lm.head() == c
    assert read().lag == 0


def test_35_a_source_that_is_deleted_or_recreated_freezes_the_mirror(lm: Deployment, a: str) -> None:
    repository = lm.us.repositories.pop("lake")
    lm.work()
    assert "is gone" in Repository.objects.get().frozen_reason
    lm.us.repositories["lake"] = replace(
        repository, info=replace(repository.info, creation_date=repository.info.creation_date + 5)
    )
    lm.lake.commit(files={"b": b"2"})
    lm.arrive()
    lm.work()
    assert lm.head() == a
    assert read().state is State.FROZEN


@pytest.mark.parametrize("left", [[], ["dev"]])
def test_36_a_look_without_the_default_branch_is_none(lm: Deployment, a: str, left: list[str]) -> None:
    point(lm, "dev", a)
    lm.work()
    for name in {"main", "dev"} - set(left):
        del lm.lake.repository.branches[name]
    lm.work()
    SourceBranch.objects.update(missing_since=datetime.now(UTC) - timedelta(hours=1))
    lm.work()
    assert (lm.head(), lm.head("dev")) == (a, a)


# --- calls that go wrong, workers that meet ---------------------------------------------------------------------------


def test_31_a_move_that_answered_500_after_it_took_place_is_not_done_twice(lm: Deployment, a: str) -> None:
    c = lm.lake.commit(files={"b": b"2"})
    lm.arrive()
    lm.eu.after["hard_reset_branch"] = RemoteFailure("500")
    lm.work()
    assert lm.head() == c
    assert lm.eu.calls.count("hard_reset_branch") == 1
    assert history()[-1] == ("advanced", a, c)


def test_31_a_move_that_did_not_take_place_is_done_again(lm: Deployment, a: str) -> None:
    c = lm.lake.commit(files={"b": b"2"})
    lm.arrive()
    lm.eu.failing["hard_reset_branch"] = RemoteFailure("500")
    lm.work()
    assert (lm.head(), MirrorBranch.objects.get().position) == (a, 0)
    del lm.eu.failing["hard_reset_branch"]
    lm.work()
    assert lm.head() == c
    assert not {*MOVED_BY_OTHERS} & {why for why, _, _ in history()}


def test_32_of_two_workers_one_acts_and_the_end_is_the_newest(lm: Deployment, a: str) -> None:
    """The first one chose B and stalls in its call until its lease is over; meanwhile a second one promotes C."""
    b = lm.lake.commit(files={"b": b"1"})
    lm.work(1)
    c = lm.lake.commit(files={"c": b"1"})
    lm.arrive(lm.lake.address_of(c, "c"))
    duty, plain, stalled = Duty.objects.get(kind="promote"), lm.eu.hard_reset_branch, []

    def stall(repository: str, branch: str, commit: str) -> None:
        if not stalled:
            stalled.append(commit)
            Duty.objects.filter(pk=duty.pk).update(until=None)
            lm.arrive()
            lm.work()
            assert lm.head() == c
        plain(repository, branch, commit)

    with mock.patch.object(lm.eu, "hard_reset_branch", stall):
        lm.work(1)
    assert stalled == [b]
    assert (lm.head(), MirrorBranch.objects.get().head) == (b, c), "too late, and it wrote nothing down"
    lm.work()
    assert lm.head() == c
    assert lm.torn() == []


def test_32_a_second_worker_finds_the_duty_in_other_hands(lm: Deployment, a: str) -> None:
    duty = Duty.objects.get(kind="promote")
    Duty.objects.filter(pk=duty.pk).update(due_at=Now())
    assert Duty.objects.claim(duty.pk, holder="worker-1", lease=60, interval=60)
    assert "run by another worker" in lm.run(duty.pk, holder="worker-2")


# --- tampering --------------------------------------------------------------------------------------------------------


def test_23_a_branch_that_somebody_moved_is_noted_and_put_back(lm: Deployment, a: str) -> None:
    b = mirrored(lm, b=b"2")
    there(lm).branches["main"] = a
    lm.work()
    assert lm.head() == b
    assert history()[-2:] == [("back-where-it-was", b, a), ("put-back", a, b)]


def test_23_a_branch_that_somebody_committed_to_goes_on_from_where_it_was(lm: Deployment, a: str) -> None:
    """Noted too when something newer has become complete in the meantime."""
    c = lm.lake.commit(files={"c": b"1"})
    lm.arrive()
    there(lm).commits["f" * 64] = replace(there(lm).commits[a], id="f" * 64)
    there(lm).branches["main"] = "f" * 64
    lm.work()
    assert lm.head() == c
    assert history()[-2:] == [("moved-by-somebody", a, "f" * 64), ("advanced", "f" * 64, c)]


def test_23_a_branch_that_somebody_moved_ahead_of_its_data_is_put_back(lm: Deployment, a: str) -> None:
    c = lm.lake.commit(files={"c": b"1"})
    lm.arrive(lm.lake.address_of(c, "c"))
    lm.work()
    there(lm).branches["main"] = c
    lm.work()
    assert lm.head() == a
    assert history()[-2:] == [("moved-by-somebody", a, c), ("put-back", c, a)]


def test_23_a_branch_that_somebody_deleted_is_made_again(lm: Deployment, a: str) -> None:
    point(lm, "dev", a)
    lm.work()
    del there(lm).branches["dev"]
    lm.work()
    assert lm.head("dev") == a
    assert history("dev")[-2:] == [("gone-at-the-mirror", a, ""), ("put-back", "", a)]


def test_23_a_crash_after_the_move_is_nobody_elses_doing(lm: Deployment, a: str) -> None:
    c = lm.lake.commit(files={"c": b"1"})
    lm.arrive()
    with mock.patch("mirroring.promote.move_history.record", side_effect=RuntimeError("killed")):
        lm.work()
    lm.work()
    assert lm.head() == MirrorBranch.objects.get().head == c
    assert not {*MOVED_BY_OTHERS} & {why for why, _, _ in history()}


def test_23_a_branch_that_only_the_mirror_has_is_shown_and_left_alone(lm: Deployment, a: str) -> None:
    there(lm).branches["by-hand"] = a
    lm.work()
    assert lm.head("by-hand") == a
    assert (read("by-hand").state, read("by-hand").reason_code) == (State.TAMPERED, "stray_branch")
    assert history("by-hand") == [("moved-by-somebody", "", a)]
    del there(lm).branches["by-hand"]
    lm.work()
    assert not MirrorBranch.objects.filter(name="by-hand").exists()


def test_23_a_branch_that_somebody_made_before_us_is_shown_then_moved(lm: Deployment, a: str) -> None:
    point(lm, "dev", a)
    dev = lm.lake.commit("dev", {"d": b"1"})
    lm.arrive(lm.lake.address_of(dev, "d"))
    there(lm).branches["dev"] = lm.lake.repository.commits[a].parents[0]
    lm.work()
    assert (read("dev").state, read("dev").reason_code) == (State.TAMPERED, "stray_branch")
    lm.arrive()
    lm.work()
    assert (lm.head("dev"), read("dev").state) == (dev, State.UP_TO_DATE)


def test_23_a_branch_that_somebody_made_again_after_it_went_is_not_deleted(lm: Deployment, a: str) -> None:
    root = lm.lake.repository.commits[a].parents[0]
    point(lm, "dev", a)
    lm.work()
    forget_branch(lm, "dev")
    there(lm).branches["dev"] = root
    lm.work()
    assert lm.head("dev") == root
    assert read("dev").reason_code == "stray_branch"


def test_24_an_uncommitted_change_is_shown_and_promotion_goes_on(lm: Deployment, a: str) -> None:
    there(lm).uncommitted.add("main")
    c = lm.lake.commit(files={"c": b"1"})
    lm.arrive()
    lm.work()
    assert lm.head() == c
    assert (read().state, read().reason_code) == (State.TAMPERED, "uncommitted_change")
    assert "drop_uncommitted" not in lm.eu.calls
    there(lm).uncommitted.clear()
    MirrorBranch.objects.update(looked_at=None)
    lm.work()
    assert read().state is State.UP_TO_DATE


def test_24_an_uncommitted_change_is_undone_on_an_operators_word(lm: Deployment, a: str) -> None:
    there(lm).uncommitted.add("main")
    MirrorBranch.objects.update(looked_at=None)
    lm.work(1)
    MirrorBranch.objects.update(reset_asked=True)
    lm.work(1)
    assert not there(lm).uncommitted
    assert not MirrorBranch.objects.get().reset_asked
    assert read().state is State.UP_TO_DATE


@pytest.mark.parametrize(
    ("repair", "state", "told"),
    [
        ("report", State.TAMPERED, ["written-by-somebody"]),
        ("auto", State.UP_TO_DATE, ["written-by-somebody", "uncommitted-changes-undone"]),
    ],
)
def test_24_an_uncommitted_change_is_undone_at_once_by_setting(
    lm: Deployment, a: str, repair: str, state: State, told: list[str]
) -> None:
    Mirror.objects.update(repair_tampering=repair)
    there(lm).uncommitted.add("main")
    for _ in range(2):
        MirrorBranch.objects.update(looked_at=None)
        lm.work(1)
    assert bool(there(lm).uncommitted) is (repair == "report")
    assert (read().state, lm.head()) == (state, a)
    assert [move for move in history() if move[1] == move[2]] == [(why, a, a) for why in told]


def test_24_what_comes_back_is_told_and_undone_again(lm: Deployment, a: str) -> None:
    Mirror.objects.update(repair_tampering="auto")
    for _ in range(2):
        there(lm).uncommitted.add("main")
        MirrorBranch.objects.update(looked_at=None)
        lm.work(1)
    assert [why for why, _, _ in history()][-4:] == ["written-by-somebody", "uncommitted-changes-undone"] * 2


def test_24_the_setting_undoes_what_was_only_told_before(lm: Deployment, a: str, owner: User) -> None:
    there(lm).uncommitted.add("main")
    MirrorBranch.objects.update(looked_at=None)
    lm.work(1)
    mirror_update(actor=owner, mirror=Mirror.objects.get(), changes={"repair_tampering": "auto"})
    lm.work(1)
    assert (there(lm).uncommitted, read().state) == (set(), State.UP_TO_DATE)
    assert [why for why, _, _ in history()][-2:] == ["written-by-somebody", "uncommitted-changes-undone"]


@pytest.mark.parametrize("change", ["paused", "writable"])
def test_24_the_setting_undoes_nothing_where_nothing_is_forced(lm: Deployment, a: str, change: str) -> None:
    Mirror.objects.update(repair_tampering="auto", paused=change == "paused")
    there(lm).uncommitted.add("main")
    there(lm).info = replace(there(lm).info, read_only=change != "writable")
    MirrorBranch.objects.update(looked_at=None)
    lm.run(Duty.objects.get(kind="promote").pk)
    assert there(lm).uncommitted == {"main"}


def test_24_nothing_is_undone_on_a_repository_that_is_not_ours(lm: Deployment, a: str) -> None:
    there(lm).uncommitted.add("main")
    there(lm).info = replace(there(lm).info, read_only=False)
    MirrorBranch.objects.update(reset_asked=True)
    lm.run(Duty.objects.get(kind="promote").pk)
    assert there(lm).uncommitted == {"main"}


def test_24_looks_for_uncommitted_changes_are_few_and_reach_every_branch(lm: Deployment, a: str) -> None:
    names = [f"b{n}" for n in range(25)]
    for name in names:
        point(lm, name, a)
    lm.work(1)
    MirrorBranch.objects.update(looked_at=datetime.now(UTC) - timedelta(hours=1))
    there(lm).uncommitted.add(random.Random(7).choice(names))
    before = lm.eu.calls.count("has_uncommitted")
    lm.work(1)
    assert lm.eu.calls.count("has_uncommitted") - before == 10
    for _ in range(2):
        lm.work(1)
    assert lm.eu.calls.count("has_uncommitted") - before == 26
    assert MirrorBranch.objects.get(uncommitted=True).name in there(lm).uncommitted


def test_25_a_repository_made_anew_is_filled_again(lm: Deployment, a: str) -> None:
    jobs = len(lm.checked)
    there(lm).info = replace(there(lm).info, creation_date=there(lm).info.creation_date + 9)
    there(lm).branches.clear()
    there(lm).commits.clear()
    lm.work()
    assert (lm.head(), Mirror.objects.get().state) == (a, "active")
    assert there(lm).commits == lm.lake.repository.commits
    assert len(lm.checked) == jobs + 1, "who removed a repository may have emptied its place: it is looked at anew"


def test_25_while_a_server_loses_the_repository_nothing_is_taken_for_moved(lm: Deployment, a: str) -> None:
    """For some seconds a deleted repository is still known, without its branches."""
    before = history()
    branches = dict(there(lm).branches)
    there(lm).branches.clear()
    lm.work()
    assert (history(), lm.head()) == (before, "")
    assert "this answer is ignored" in Duty.objects.get(kind="promote").outcome
    there(lm).branches.update(branches)
    lm.work()
    assert read().state is State.UP_TO_DATE


@pytest.mark.parametrize("change", ["history", "writable", "older"])
def test_25_a_repository_that_is_not_ours_to_fill_is_left_alone(lm: Deployment, a: str, change: str) -> None:
    info, later = there(lm).info, there(lm).info.creation_date + 9
    if change != "history":
        there(lm).branches.clear()
        there(lm).commits.clear()
    there(lm).info = replace(info, creation_date=1 if change == "older" else later, read_only=change != "writable")
    before = dict(there(lm).branches)
    lm.lake.commit(files={"b": b"2"})
    lm.arrive()
    lm.work()
    assert there(lm).branches == before
    code = "failed-over" if change == "writable" else "repository-replaced"
    assert Mirror.objects.get().reason_code == code
    assert read().state is State.STOPPED


def test_33_a_record_that_does_not_give_its_id_is_refused_and_delays_no_other_branch(lm: Deployment, a: str) -> None:
    point(lm, "dev", a)
    bad = lm.lake.commit("dev", {"b": b"2"})
    newer = lm.lake.commit("main", {"c": b"3"})
    commits = lm.lake.repository.commits
    commits[bad] = replace(commits[bad], message="not what was hashed")
    lm.arrive()
    lm.work()
    assert (lm.head(), lm.head("dev")) == (newer, "")
    assert Blocker.objects.get(kind="record").reason == "source-corrupt"


def test_33_a_record_with_another_generation_stops_the_mirror(lm: Deployment, a: str) -> None:
    c = lm.lake.commit(files={"c": b"1"})
    there(lm).commits[c] = replace(lm.lake.repository.commits[c], generation=77)
    lm.arrive()
    lm.work()
    assert lm.head() == a
    assert (read().state, read().reason_code) == (State.STOPPED, "tampered_record")
    ours = lm.eu.repositories.pop("lake-eu")
    lm.work(1)
    lm.eu.repositories["lake-eu"] = ours
    lm.work()
    assert (lm.head(), Mirror.objects.get().reason_code) == (a, "tampered-record")
    info = replace(there(lm).info, creation_date=there(lm).info.creation_date + 9)
    lm.eu.repositories["lake-eu"] = replace(ours, info=info, commits={}, branches={})
    lm.work()
    assert (lm.head(), read().state) == (c, State.UP_TO_DATE)


def test_37_nothing_is_forced_on_a_repository_that_became_writable(lm: Deployment, a: str) -> None:
    there(lm).info = replace(there(lm).info, read_only=False)
    lm.lake.commit(files={"b": b"2"})
    lm.arrive()
    forced = ("create_branch", "hard_reset_branch", "delete_branch", "drop_uncommitted")
    before = [call for call in lm.eu.calls if call in forced]
    lm.work()
    assert [call for call in lm.eu.calls if call in forced] == before
    assert (read().state, read().reason_code) == (State.STOPPED, "failed_over")
