"""The commit sensor and the copying of records: what they ask, in which order, and what a crash leaves."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from core.errors import RemoteFailure, Unreachable
from core.types import Commit as CommitRecord
from core.types import Page, RecordOutcome
from deployment import config
from jobs.models import Duty
from mirrors.models import Candidate, Commit, Mirror, MirrorCommit, Repository, SourceBranch, UnplacedCommit
from mirrors.transitions.ancestry import mark_complete_ancestry
from tests.fakes import id_of
from tests.mirrors.harness import Deployment, state_of

pytestmark = pytest.mark.django_db(transaction=True)


def run(lm: Deployment, *kinds: str) -> str:
    """Let the duties of these kinds run once."""
    return [lm.run(duty.pk) for kind in kinds for duty in Duty.objects.filter(kind=kind)][-1]


@contextmanager
def settings(**sensor: int) -> Iterator[None]:
    """Other page sizes or limits."""
    now = config.current()
    changed = replace(now, commit_sensor=replace(now.commit_sensor, **sensor))
    with mock.patch.object(config, "current", lambda: changed):
        yield


def grow(lm: Deployment, commits: int, branch: str = "main", *, version: int = 1) -> list[str]:
    """Commits without any files, in a line."""
    repository = lm.lake.repository
    head = repository.branches[branch]
    made = []
    for number in range(commits):
        made.append(head := record(lm, (head,), f"{branch} {number}", version=version))
    repository.branches[branch] = head
    return made


def record(lm: Deployment, parents: tuple[str, ...], message: str, *, version: int = 1) -> str:
    lm.lake.clock += 1
    plain = CommitRecord("", parents, "ada", message, lm.lake.clock, "", {}, 1, version)
    made = replace(plain, id=id_of(plain))
    lm.lake.repository.commits[made.id] = made
    lm.lake.trees[made.id] = {}
    return made.id


def stands_after_its_parents() -> bool:
    keys = dict(Commit.objects.values_list("sha", "pk"))
    rows = Commit.objects.values_list("pk", "parents")
    return all(keys[parent] < pk for pk, parents in rows for parent in parents)


# --- requests ---------------------------------------------------------------------------------------------------------


def test_an_unchanged_source_costs_one_page_of_branches(lm: Deployment) -> None:
    head = lm.lake.commit(files={"a": b"1"})
    for number in range(999):
        lm.lake.repository.branches[f"b{number:03}"] = head
    run(lm, "sense")
    lm.us.calls.clear()
    assert run(lm, "sense") == "1000 branches, 0 moved, 0 new commits"
    assert lm.us.calls == ["list_branches", "list_repositories"], "whose they are is asked at each look"


def test_one_branch_of_a_thousand_costs_one_log(lm: Deployment) -> None:
    head = lm.lake.commit(files={"a": b"1"})
    for number in range(999):
        lm.lake.repository.branches[f"b{number:03}"] = head
    run(lm, "sense")
    lm.us.calls.clear()
    lm.lake.commit("b500", {"b": b"2"})
    assert run(lm, "sense") == "1000 branches, 1 moved, 1 new commits"
    assert lm.us.calls == ["list_branches", "log_commits", "list_repositories"]


def test_pages_are_as_long_as_configured(lm: Deployment) -> None:
    grow(lm, 40)
    for number in range(20):
        lm.lake.repository.branches[f"b{number:02}"] = lm.lake.repository.branches["main"]
    with settings(list_branch_page_size=7, log_commit_page_size=10):
        run(lm, "sense")
    assert Counter(lm.us.calls)["list_branches"] == 6  # the second time without hidden ones, for all are new
    assert Counter(lm.us.calls)["log_commits"] == 5  # the root and 40 commits; each page begins with what was missing
    assert Commit.objects.count() == 41


def test_histories_are_read_side_by_side_up_to_the_limit(lm: Deployment) -> None:
    for number in range(6):
        lm.lake.repository.branches[f"b{number}"] = lm.lake.repository.branches["main"]
    run(lm, "sense")
    for number in range(6):
        grow(lm, 3, f"b{number}")
    busy, most, plain = [], [], lm.us.log_commits

    def log(*args: Any, **page: Any) -> Any:
        busy.append(threading.get_ident())
        most.append(len(busy))
        time.sleep(0.05)
        busy.pop()
        return plain(*args, **page)

    with mock.patch.object(lm.us, "log_commits", log), settings(branches_scanner_concurrency_limit=4):
        run(lm, "sense")
    assert max(most) == 4
    assert Commit.objects.count() == 19
    assert stands_after_its_parents()


# --- long histories ---------------------------------------------------------------------------------------------------


def test_histories_with_merges_and_records_of_version_0_are_stored_parents_first(lm: Deployment) -> None:
    chance = random.Random(7)
    heads = {"main": lm.lake.repository.branches["main"]}
    for number in range(120):
        branch = chance.choice(["main", "x", "y"])
        parents = {heads.get(branch, heads["main"]), *([chance.choice(sorted(heads.values()))] * chance.randrange(2))}
        heads[branch] = record(lm, tuple(sorted(parents)), f"{number}", version=chance.randrange(2))
    lm.lake.repository.branches.update(heads)
    with (
        settings(log_commit_page_size=10),
        shuffled_logs(lm, chance),
        mock.patch("mirroring.sense.commit_spool.BATCH", 7),
    ):
        run(lm, "sense")
    assert set(Commit.objects.values_list("sha", flat=True)) == reachable(lm, heads.values())
    assert stands_after_its_parents()
    assert not UnplacedCommit.objects.exists()


def reachable(lm: Deployment, heads: Any) -> set[str]:
    return {sha for head in heads for sha in lm.us._walk(lm.lake.repository.commits, head)}


@contextmanager
def shuffled_logs(lm: Deployment, chance: random.Random) -> Iterator[None]:
    """Each log in an order of its own: parents before children too."""
    logs: dict[str, list[str]] = {}

    def log(repository: str, commit_id: str, *, after: str = "", amount: int = 1000) -> Page[CommitRecord]:
        commits = lm.lake.repository.commits
        if commit_id not in logs:
            logs[commit_id] = chance.sample(order := lm.us._walk(commits, commit_id), k=len(order))
        start = logs[commit_id].index(after) + 1 if after else 0
        page = logs[commit_id][start : start + amount]
        return Page([commits[c] for c in page], page[-1] if start + amount < len(logs[commit_id]) else "")

    with mock.patch.object(lm.us, "log_commits", log):
        yield


def dies_after(calls: int, plain: Callable[..., Any]) -> Callable[..., Any]:
    left = [calls]

    def call(*args: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return plain(*args, **options)

    return call


def die_while_reading(lm: Deployment, pages: int) -> None:
    """The sensor's worker is killed after so many pages of the log."""
    with (
        mock.patch.object(lm.us, "log_commits", dies_after(pages, lm.us.log_commits)),
        pytest.raises(KeyboardInterrupt),
    ):
        run(lm, "sense")


def test_a_reading_that_was_killed_goes_on_where_it_was(lm: Deployment) -> None:
    grow(lm, 99)
    with settings(log_commit_page_size=10):
        die_while_reading(lm, 8)
        assert not Commit.objects.exists()
        assert not SourceBranch.objects.exists()
        Duty.objects.update(until=None)
        lm.us.calls.clear()
        run(lm, "sense")
    assert Counter(lm.us.calls)["log_commits"] == 2
    assert Commit.objects.count() == 100
    assert stands_after_its_parents()
    assert SourceBranch.objects.get().candidates.count() == 1


def test_a_source_that_stops_answering_costs_none_of_what_was_read(lm: Deployment) -> None:
    grow(lm, 99)
    plain, calls = lm.us.log_commits, []

    def log(*args: Any, **page: Any) -> Any:
        calls.append(args)
        if len(calls) == 7:
            raise Unreachable("away")
        return plain(*args, **page)

    with settings(log_commit_page_size=10), mock.patch.object(lm.us, "log_commits", log):
        run(lm, "sense")
        run(lm, "sense")
    assert len(calls) == 11
    assert Commit.objects.count() == 100


def test_what_was_read_for_a_branch_that_is_gone_is_forgotten(lm: Deployment) -> None:
    lm.lake.repository.branches["dev"] = lm.lake.repository.branches["main"]
    run(lm, "sense")
    grow(lm, 30, "dev")
    with settings(log_commit_page_size=10):
        die_while_reading(lm, 1)
        Duty.objects.update(until=None)
        for sha in UnplacedCommit.objects.values_list("parents", flat=True):
            lm.lake.repository.commits.pop(sha[0], None)
        del lm.lake.repository.branches["dev"]
        head = grow(lm, 1)[0]
        run(lm, "sense")
    assert SourceBranch.objects.get(name="main").head == head
    assert not UnplacedCommit.objects.exists()


@pytest.mark.parametrize("batches", range(4))
def test_placing_that_was_killed_leaves_whole_histories_and_goes_on(lm: Deployment, batches: int) -> None:
    run(lm, "manage", "sense")
    head = grow(lm, 34)[-1]
    plain = MirrorCommit.objects.bulk_create
    with (
        mock.patch("mirroring.sense.commit_spool.BATCH", 10),
        mock.patch.object(MirrorCommit.objects, "bulk_create", dies_after(batches, plain)),
        pytest.raises(KeyboardInterrupt),
    ):
        run(lm, "sense")
    assert Commit.objects.count() == 1 + 10 * batches == MirrorCommit.objects.count()
    assert stands_after_its_parents()
    assert SourceBranch.objects.get().head != head
    Duty.objects.update(until=None)
    lm.us.calls.clear()
    run(lm, "sense")
    assert "log_commits" not in lm.us.calls
    assert SourceBranch.objects.get().head == head
    assert MirrorCommit.objects.count() == 35
    assert Candidate.objects.count() == 35


def test_a_branch_moved_on_while_its_history_was_being_read(lm: Deployment) -> None:
    grow(lm, 50)
    with settings(log_commit_page_size=10):
        die_while_reading(lm, 3)
        Duty.objects.update(until=None)
        head = grow(lm, 15)[-1]
        run(lm, "sense")
    assert Commit.objects.count() == 66
    assert SourceBranch.objects.get().head == head
    assert not UnplacedCommit.objects.exists()


def test_what_a_source_said_wrongly_is_not_kept(lm: Deployment) -> None:
    """Records in a circle: nothing of them is stored, and the next look reads all of it again."""
    a, b = grow(lm, 2)
    commits = lm.lake.repository.commits
    whole = commits[a]
    commits[a] = replace(whole, parents=(b,))
    run(lm, "sense")
    assert "circle" in Repository.objects.get().look_error
    assert not UnplacedCommit.objects.exists()
    commits[a] = whole
    run(lm, "sense")
    assert SourceBranch.objects.get().head == b


def test_a_replaced_source_is_frozen_and_nothing_of_it_is_stored(lm: Deployment) -> None:
    run(lm, "sense")
    info = lm.lake.repository.info
    lm.lake.repository.info = replace(info, creation_date=info.creation_date + 5)
    grow(lm, 5)
    run(lm, "sense")
    assert Repository.objects.get().frozen_reason
    assert Commit.objects.count() == 1
    assert not UnplacedCommit.objects.exists()


@pytest.mark.parametrize("version", [0, 1])
def test_a_long_fast_forward_adds_its_whole_line(lm: Deployment, version: int) -> None:
    run(lm, "sense")
    side = lm.lake.repository.branches["side"] = record(lm, (lm.lake.repository.branches["main"],), "side")
    run(lm, "sense")
    line = grow(lm, 60, version=version)
    parents = (line[-1], side) if version else (side, line[-1])
    merged = record(lm, parents, "merge", version=version)
    lm.lake.repository.branches["main"] = merged
    with (
        mock.patch("mirroring.sense.branches.FIRST_WINDOW", 3),
        mock.patch("mirroring.sense.branches.LAST_WINDOW", 9),
    ):
        run(lm, "sense")
    main = SourceBranch.objects.get(name="main")
    assert list(main.candidates.values_list("commit__sha", flat=True))[1:] == [*line, merged]
    assert list(main.candidates.values_list("position", flat=True)) == list(range(62))
    assert main.position == 61


# --- copying ----------------------------------------------------------------------------------------------------------


def prepare(lm: Deployment, lines: int, length: int) -> None:
    """A mirror that knows some lines of commits, and has copied nothing of them."""
    for number in range(lines):
        lm.lake.repository.branches[f"b{number}"] = lm.lake.repository.branches["main"]
        grow(lm, length, f"b{number}")
    run(lm, "manage", "sense")


def test_records_are_sent_side_by_side_and_never_before_their_parents(lm: Deployment) -> None:
    prepare(lm, lines=5, length=6)
    sent, busy, most = [], [], []
    there, plain = lm.eu.repositories["lake-eu"].commits, lm.eu.put_commit_record

    def put(repository: str, commit: CommitRecord) -> RecordOutcome:
        busy.append(commit.id)
        most.append(len(busy))
        sent.append(all(parent in there for parent in commit.parents))
        time.sleep(0.01)
        busy.pop()
        return plain(repository, commit)

    with mock.patch.object(lm.eu, "put_commit_record", put), mock.patch("mirroring.copy_records.AT_ONCE", 3):
        assert run(lm, "copy") == "31 of 31 records accepted"
    assert all(sent)
    assert max(most) == 3


@pytest.mark.parametrize("batch", [4, 500])
def test_a_failing_record_delays_its_descendants_in_all_batches_and_nobody_else(lm: Deployment, batch: int) -> None:
    prepare(lm, lines=3, length=6)
    bad = lm.lake.repository.commits[lm.lake.repository.branches["b1"]].parents[0]
    plain = lm.eu.put_commit_record

    def put(repository: str, commit: CommitRecord) -> RecordOutcome:
        if commit.id == bad:
            raise RemoteFailure("500")
        return plain(repository, commit)

    with mock.patch.object(lm.eu, "put_commit_record", put), mock.patch("mirroring.copy_records.BATCH", batch):
        run(lm, "copy")
    assert MirrorCommit.objects.filter(record="pending").count() == 2
    assert Duty.objects.get(kind="copy").failures == 1
    run(lm, "copy")
    assert not MirrorCommit.objects.filter(record="pending").exists()


def test_what_was_accepted_beside_a_call_that_broke_off_is_written_down(lm: Deployment) -> None:
    prepare(lm, lines=2, length=1)
    run(lm, "copy")
    first, second = (grow(lm, 1, f"b{number}")[0] for number in range(2))
    run(lm, "sense")
    plain, began = lm.eu.put_commit_record, threading.Event()

    def put(repository: str, commit: CommitRecord) -> RecordOutcome:
        if commit.id == first:
            began.wait(5)
            raise Unreachable("away")
        began.set()
        time.sleep(0.1)
        return plain(repository, commit)

    with mock.patch.object(lm.eu, "put_commit_record", put):
        run(lm, "copy")
    assert (state_of(first).record, state_of(second).record) == ("pending", "accepted")


def test_a_record_with_another_generation_stops_the_mirror(lm: Deployment) -> None:
    prepare(lm, lines=1, length=3)
    theirs = lm.lake.repository.branches["b0"]
    there = lm.eu.repositories["lake-eu"].commits
    there[theirs] = replace(lm.lake.repository.commits[theirs], generation=77)
    run(lm, "copy")
    assert Mirror.objects.get().reason_code == "tampered-record"
    assert state_of(theirs).record == "tampered"


def test_histories_are_put_in_order_batch_by_batch(lm: Deployment) -> None:
    prepare(lm, lines=3, length=7)
    run(lm, "copy")
    MirrorCommit.objects.update(data="complete", history=False)
    stuck = MirrorCommit.objects.order_by("commit_id")[12]
    MirrorCommit.objects.filter(pk=stuck.pk).update(data="waiting")
    mirror = Mirror.objects.get()
    with mock.patch("mirrors.transitions.ancestry.BATCH", 5):
        settled = mark_complete_ancestry(mirror)
    behind = {stuck.commit.sha}
    for sha, parents in Commit.objects.order_by("pk").values_list("sha", "parents"):
        if behind.intersection(parents):
            behind.add(sha)
    open_ = set(MirrorCommit.objects.filter(history=False).values_list("commit__sha", flat=True))
    assert open_ == behind - {stuck.commit.sha}
    assert settled == 22 - len(open_)


# --- hidden branches ------------------------------------------------------------------------------------------------


def test_a_hidden_branch_is_followed_and_hidden_at_the_mirror_too(lm: Deployment) -> None:
    source, head = lm.lake.repository, lm.lake.commit()
    source.branches |= {"secret": head, "dev": head}
    source.hidden.add("secret")
    lm.arrive()
    lm.work()
    there = lm.eu.repositories["lake-eu"]
    assert there.branches == {"main": head, "secret": head, "dev": head}
    assert there.hidden == {"secret"}
    later = lm.lake.commit("secret")
    lm.arrive()
    lm.work()
    assert (there.branches["secret"], there.hidden) == (later, {"secret"})


def test_which_branches_are_hidden_is_asked_only_when_there_are_new_ones(lm: Deployment) -> None:
    lm.work()
    lm.us.calls.clear()
    lm.lake.commit()
    run(lm, "sense")
    assert lm.us.calls.count("list_branches") == 1
    lm.lake.repository.branches["dev"] = lm.lake.repository.branches["main"]
    run(lm, "sense")
    assert lm.us.calls.count("list_branches") == 3
    run(lm, "sense")
    assert lm.us.calls.count("list_branches") == 4


def test_a_branch_that_is_made_anew_may_be_hidden_then(lm: Deployment) -> None:
    source = lm.lake.repository
    source.branches["dev"] = source.branches["main"]
    run(lm, "manage", "sense")
    SourceBranch.objects.filter(name="dev").update(gone_at="2026-11-01T00:00:00Z", hidden=False)
    source.hidden.add("dev")
    run(lm, "sense")
    assert list(SourceBranch.objects.order_by("name").values_list("name", "hidden")) == [("dev", True), ("main", False)]


def test_a_plain_list_without_the_default_branch_hides_nothing(lm: Deployment) -> None:
    """A source that is just being deleted answers with no branches for some seconds."""
    lm.lake.repository.hidden.add("main")
    assert "returned no branch main" in run(lm, "manage", "sense")
    assert not SourceBranch.objects.exists()
