"""A merge is held until enough regions have it: what is released, what is refused, what a mirror shows meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.db.models.functions import Now
from django.http import HttpResponse
from django.test import Client

from core.errors import Unreachable
from db import clock
from deployment import config
from mirrors.models import Candidate, Commit, Coverage, HeldMerge, Mirror, MirrorCommit
from mirrors.services.holds import hold as waiting
from mirrors.services.settings import mirror_update
from mirrors.services.waivers import waiver_give
from rbac.models import User
from tests.mirrors.harness import Deployment, untold

pytestmark = pytest.mark.django_db
State = HeldMerge.State
POLICY: dict[str, Any] = {"branches": "main", "copies": 1, "hold_seconds": 30, "when_late": "refuse"}


@pytest.fixture
def held(lm: Deployment, owner: User) -> Iterator[Deployment]:
    """A mirror that holds merges into main; dev is one commit ahead. Rests of who waits are rounds of the workers."""
    lm.lake.commit(files={"a": b"1"})
    lm.lake.repository.branches["dev"] = lm.lake.repository.branches["main"]
    lm.lake.commit("dev", files={"b": b"2"})
    lm.lake.commit(files={"c": b"3"})
    lm.arrive()
    lm.work()
    mirror_update(actor=owner, mirror=Mirror.objects.get(), changes={"hold": [POLICY]})
    lm.work(1)
    with resting(lambda: lm.work(1)):
        yield lm


def resting(then: Callable[[], object]) -> Any:
    """What happens while somebody waits; their time passes."""

    def rest(seconds: float) -> None:
        then()
        HeldMerge.objects.filter(state=State.HELD).update(until=clock.now() + timedelta(seconds=rests.pop(0)))

    rests = [20.0, 15.0, 10.0, 5.0, 0.0, -1.0, -1.0]
    return mock.patch.object(waiting, "rest", rest)


def merge_commit(lm: Deployment, source: str = "dev", message: str = "") -> str:
    """A merge commit of both heads that no branch points to yet, as lakeFS has it while it asks."""
    ours, theirs = lm.lake.repository.branches["main"], lm.lake.repository.branches[source]
    tree = lm.lake.trees[ours] | lm.lake.trees[theirs]
    return lm.lake.record_tree((ours, theirs), tree, message or f"Merge '{source}' into 'main'")


def ask(commit: str, query: str = "", secret: str = "", **changes: Any) -> tuple[int, Any]:
    body = {
        "event_type": "pre-merge",
        "hook_id": "lakemirror-hold-see-hook-output",
        "repository_id": "lake",
        "branch_id": "main",
        "source_ref": commit,
        "commit_id": commit,
        "merge_source": "dev",
    } | changes
    given = secret or f"Bearer {config.current().hook_secret('us-east-1')}"
    answer: HttpResponse = Client().post(
        f"/hooks/hold/us-east-1{query}", json.dumps(body), "application/json", headers={"Authorization": given}
    )
    return answer.status_code, json.loads(answer.content)


def test_43_a_merge_is_released_once_the_mirror_has_all_of_it(held: Deployment) -> None:
    before, commit = held.head(), merge_commit(held)
    with resting(lambda: (held.arrive(), held.work(1))):
        status, answer = ask(commit)
    assert (status, answer["complete_in"]) == (200, ["eu-west-1"])
    assert held.eu.repositories["lake-eu"].commits[commit] and not held.torn()
    row = HeldMerge.objects.get()
    assert (row.state, row.complete_in, row.seen_at) == (State.RELEASED, ["eu-west-1"], None)
    held.work()
    assert held.head() == before and not Candidate.objects.filter(commit__sha=commit).exists()
    held.lake.repository.branches["main"] = commit
    held.work(1)
    assert held.head() == commit
    row.refresh_from_db()
    assert row.seen_at is not None and not HeldMerge.objects.filter(state=State.UNGATED).exists()


def test_43_late_it_is_refused_with_what_is_there_and_the_next_try_passes(held: Deployment) -> None:
    before, commit = held.head(), merge_commit(held)
    held.arrive(f"_lakefs/{held.lake.files_of(commit)[1]}")
    status, answer = ask(commit)
    assert status == 503 and "eu-west-1" in answer["message"] and answer["message"].endswith("what arrived stays")
    assert HeldMerge.objects.get().state == State.REFUSED and held.head() == before
    held.arrive()
    again = merge_commit(held, message="again")
    assert held.lake.files_of(again) == held.lake.files_of(commit) and again != commit
    with resting(lambda: held.work(1)):
        status, answer = ask(again)
    assert (status, held.head()) == (200, before)


def test_a_waived_object_is_lacked_by_history_alone_never_by_the_merge(held: Deployment, owner: User) -> None:
    """dev brings x, which never arrives, and takes it back: its merge needs x in history only. The other holds it."""
    bad = held.lake.commit("dev", files={"x": b"4"})
    address = held.lake.address_of(bad, "x")
    held.lake.repository.branches["with-x"] = bad
    held.lake.commit("dev", files={"x": None})
    without, holding = merge_commit(held), merge_commit(held, "with-x")
    held.arrive(address)
    assert [ask(one)[0] for one in (without, holding)] == [503, 503]
    waiver_give(actor=owner, mirror=Mirror.objects.get(), objects=[address], reason="never copied")
    held.work()
    with resting(lambda: held.work(1)):
        assert ask(without)[0] == 200
    with resting(lambda: held.work(1)):
        status, answer = ask(holding)
    assert (status, "eu-west-1" in answer["message"]) == (503, True), answer


def test_the_words_count_what_is_there(held: Deployment) -> None:
    held.lake.commit("dev", files={f"x{n}": b"%d" % n for n in range(9)})
    commit = merge_commit(held)
    held.arrive(held.lake.address_of(commit, "x3"), held.lake.address_of(commit, "x7"))
    status, answer = ask(commit)
    assert (status, "10 of 12 objects of" in answer["message"]) == (503, True), answer


def test_late_it_may_be_allowed_and_is_told_as_that(held: Deployment) -> None:
    Mirror.objects.update(hold=[POLICY | {"when_late": "allow"}])
    commit = merge_commit(held)
    status, answer = ask(commit)
    assert (status, answer["complete_in"]) == (200, []) and "goes on all the same" in answer["message"]
    assert HeldMerge.objects.get().state == State.ALLOWED


# --- who is asked nothing, and who is refused ------------------------------------------------------------------------


def test_what_is_no_merge_is_refused_there(held: Deployment) -> None:
    for event in ("pre-commit", "pre-cherry-pick", "pre-revert"):
        status, answer = ask("", event_type=event, commit_id="")
        assert (status, "only merges" in answer["message"]) == (409, True)
    assert ask("", event_type="post-merge")[0] == 400 and not HeldMerge.objects.exists()


def test_a_wrong_secret_is_refused_and_nothing_is_stored(held: Deployment) -> None:
    assert ask(merge_commit(held), secret="Bearer wrong")[0] == 401
    assert ask(merge_commit(held), secret=" ")[0] == 401
    assert not HeldMerge.objects.exists()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"repository_id": "a/b"}, "repository_id"),
        ({"repository_id": None}, "repository_id"),
        ({"branch_id": ""}, "branch_id"),
        ({"branch_id": "x" * 257}, "branch_id"),
        ({"commit_id": "main"}, "commit_id"),
        ({"event_type": ["pre-merge"]}, "event_type"),
    ],
)
def test_a_wrong_body_is_named(held: Deployment, changes: dict[str, Any], field: str) -> None:
    status, answer = ask("0" * 64, **changes)
    assert (status, answer["field"]) == (400, field)


def test_without_a_policy_nothing_passes_unless_the_file_wants_no_copy(held: Deployment) -> None:
    commit = merge_commit(held)
    assert ask(commit, branch_id="other")[0] == 503
    assert ask(commit, repository_id="nolake")[0] == 503
    assert ask(commit, "?copies=0", branch_id="other")[0] == 200
    assert ask(commit, "?copies=2")[0] == 503
    assert not HeldMerge.objects.exists()


def test_a_commit_of_another_repository_is_never_released(held: Deployment) -> None:
    """Whoever has the secret may name what they like: its record has to be the source's."""
    assert ask("ab" * 32)[0] == 503 and HeldMerge.objects.get().state == State.REFUSED
    assert not Commit.objects.filter(sha="ab" * 32).exists()


def test_a_history_that_shares_nothing_with_the_source_is_not_stored(held: Deployment) -> None:
    stranger = held.lake.record_tree((), held.lake.trees[held.head()], "made elsewhere")
    held.arrive()
    assert ask(stranger)[0] == 503
    assert not Commit.objects.filter(sha=stranger).exists()


def test_one_more_than_may_be_held_is_refused_at_once(held: Deployment) -> None:
    source, commit = Mirror.objects.get().source, merge_commit(held)
    HeldMerge.objects.bulk_create(
        HeldMerge(
            repository=source,
            branch="main",
            commit_id=f"{n:064x}",
            held_at=clock.now(),
            until=clock.now() + timedelta(minutes=1),
        )
        for n in range(64)
    )
    status, answer = ask(commit)
    assert (status, "64 merges are held" in answer["message"]) == (503, True)
    HeldMerge.objects.update(until=Now())
    held.arrive()
    assert ask(commit)[0] == 200


# --- what may happen meanwhile ---------------------------------------------------------------------------------------


def test_44_two_merges_into_one_branch_both_end(held: Deployment) -> None:
    one, two = merge_commit(held, message="one"), merge_commit(held, message="two")
    held.arrive()
    assert [ask(one)[0], ask(two)[0]] == [200, 200]
    held.lake.repository.branches["main"] = two
    held.work()
    assert held.head() == two
    assert HeldMerge.objects.get(commit_id=one).seen_at is None


def test_a_release_that_lakefs_did_not_take_is_told_and_forgotten(held: Deployment) -> None:
    commit = merge_commit(held)
    held.arrive()
    assert ask(commit)[0] == 200
    HeldMerge.objects.update(ended_at=clock.now() - timedelta(minutes=20))
    held.work()
    assert HeldMerge.objects.get().state == State.NOT_TAKEN
    HeldMerge.objects.update(ended_at=clock.now() - timedelta(hours=2))
    held.work()
    assert not MirrorCommit.objects.filter(commit__sha=commit).exists() and not held.torn()


def test_a_head_after_all_is_promoted_however_late(held: Deployment) -> None:
    commit = merge_commit(held)
    held.arrive()
    ask(commit)
    HeldMerge.objects.update(state=State.NOT_TAKEN, wanted=False)
    Mirror.objects.update(reselected=True)
    held.work()
    held.lake.repository.branches["main"] = commit
    held.work()
    assert held.head() == commit and not HeldMerge.objects.filter(state=State.UNGATED).exists()


@pytest.mark.parametrize("change", ["deleted", "switched", "stopped", "unheld", "frozen"])
def test_a_mirror_that_changes_meanwhile_releases_nothing(held: Deployment, change: str) -> None:
    commit = merge_commit(held)
    held.arrive()
    mirror = Mirror.objects.filter(name="lake-eu")

    def meanwhile() -> None:
        held.work(1)
        if change == "deleted":
            mirror.update(state=Mirror.State.DELETING)
        elif change == "switched":
            mirror.update(store="http://elsewhere")
        elif change == "stopped":
            mirror.update(state=Mirror.State.STOPPED)
        elif change == "unheld":
            mirror.update(hold=[], held_since=None)
        else:
            Mirror.objects.get().source.__class__.objects.update(frozen_reason="another one")

    with resting(meanwhile):
        assert ask(commit)[0] == 503
    assert HeldMerge.objects.get().state == State.REFUSED


def test_a_paused_mirror_counts_for_what_it_has(held: Deployment) -> None:
    before, commit = held.head(), merge_commit(held)
    Mirror.objects.update(paused=True)
    held.arrive()
    assert ask(commit)[0] == 200
    held.lake.repository.branches["main"] = commit
    held.work()
    assert held.head() == before


def test_a_database_that_was_restored_meanwhile_releases_nothing(held: Deployment) -> None:
    commit = merge_commit(held)
    held.arrive()
    with resting(lambda: (held.work(1), HeldMerge.objects.all().delete())):
        status, answer = ask(commit)
    assert (status, "known no more" in answer["message"]) == (503, True)


def test_dead_workers_release_nothing(held: Deployment) -> None:
    commit = merge_commit(held)
    held.arrive()
    with resting(lambda: None):
        assert ask(commit)[0] == 503


def test_a_source_that_can_not_be_asked_releases_nothing(held: Deployment) -> None:
    commit = merge_commit(held)
    held.arrive()
    held.us.failing["log_commits"] = Unreachable("no answer")
    assert ask(commit)[0] == 503


def test_a_source_whose_identity_is_not_told_releases_nothing(held: Deployment) -> None:
    commit = merge_commit(held)
    held.arrive()
    with untold(held.us):
        assert ask(commit)[0] == 503


def test_what_is_lost_after_the_release_keeps_the_head_from_being_shown(held: Deployment) -> None:
    before, commit = held.head(), merge_commit(held)
    held.arrive()
    assert ask(commit)[0] == 200
    held.arrive(held.lake.address_of(commit, "b"))
    Coverage.objects.all().delete()
    MirrorCommit.objects.filter(commit__sha=commit).update(data="unknown")
    held.lake.repository.branches["main"] = commit
    held.work()
    assert held.head() == before


# --- heads that nobody released --------------------------------------------------------------------------------------


def test_45_a_head_without_a_release_is_told(held: Deployment) -> None:
    commit = merge_commit(held)
    held.lake.repository.branches["main"] = commit
    held.arrive()
    held.work()
    row = HeldMerge.objects.get()
    assert (row.state, row.commit_id, row.branch) == (State.UNGATED, commit, "main")
    held.work()
    assert HeldMerge.objects.count() == 1 and held.head() == commit


def test_heads_of_other_branches_and_of_before_are_no_news(held: Deployment) -> None:
    held.lake.commit("dev", files={"c": b"3"})
    held.lake.repository.branches["new"] = held.lake.repository.branches["dev"]
    held.arrive()
    held.work()
    assert not HeldMerge.objects.exists()
