"""Records that a restored destination lost: who sends one again may end, or not be answered, and it is known still."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any
from unittest import mock

import pytest

from core.errors import Denied, NotFound, RemoteFailure, Unreachable
from core.types import RecordOutcome
from db import clock
from jobs.models import Duty
from mirroring import copy_records
from mirroring.promote import resend_records
from mirrors.models import Mirror, MirrorCommit
from tests.fakes import FakeRepository
from tests.mirroring.test_found_by_breaking import change, mirrored
from tests.mirrors.harness import Deployment

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def small_window() -> Iterator[None]:
    """Fewer records are doubted at once than were lost."""
    with mock.patch.object(resend_records, "WINDOW", 5):
        yield


def missing(lm: Deployment, made: list[str]) -> set[str]:
    return set(made) - lm.eu.repositories["lake-eu"].commits.keys()


def lose_records(lm: Deployment, lost: list[str]) -> None:
    for sha in lost:
        del lm.eu.repositories["lake-eu"].commits[sha]


def restored_before_a_move(lm: Deployment) -> list[str]:
    """Twelve records were copied in a pause, and are lost; the branch stands where it stood."""
    mirrored(lm, a=b"0")
    change(paused=True)
    made = [lm.lake.commit(files={"a": b"%d" % n}) for n in range(12)]
    lm.arrive()
    lm.work(3)
    assert not missing(lm, made)
    lose_records(lm, made)
    change(paused=False)
    return made


def restored_with_its_branch(lm: Deployment) -> list[str]:
    made = [mirrored(lm, a=b"%d" % n) for n in range(12)]
    lose_records(lm, made[1:])
    lm.eu.repositories["lake-eu"].branches["main"] = made[0]
    return made


class Died(BaseException):
    """In place of a worker's end: nothing is written down any more."""


@pytest.mark.parametrize("ends", [Unreachable("the answer was lost"), Died()])
def test_91_an_answer_that_nobody_heard_hides_no_lost_record(lm: Deployment, ends: BaseException) -> None:
    made = restored_before_a_move(lm)
    put = lm.eu.put_commit_record
    sent: list[str] = []

    def posting(repository: str, commit: Any) -> RecordOutcome:
        outcome = put(repository, commit)
        sent.append(commit.id)
        if len(sent) == 3:
            raise ends
        return outcome

    with mock.patch.object(lm.eu, "put_commit_record", posting):
        if isinstance(ends, Died):
            with pytest.raises(Died):
                lm.work(1)
            Duty.objects.update(until=clock.now())
        lm.work(1)
        assert not lm.torn()
        lm.work(4)
    assert lm.head() == made[-1]
    assert not missing(lm, made)
    assert not Mirror.objects.get().proving_records


@pytest.mark.parametrize("loses", ["its notes", "an answer"])
def test_91_a_copier_that_ends_before_its_note_hides_no_lost_record(lm: Deployment, loses: str) -> None:
    made = restored_with_its_branch(lm)
    write_down, put = copy_records._Round._write_down, lm.eu.put_commit_record
    done: list[int] = []

    def dies(self: Any, accepted: list[Any]) -> None:
        if loses == "its notes" and accepted and not done:
            done.append(1)
            raise Unreachable("the worker ended")
        write_down(self, accepted)

    def unheard(repository: str, commit: Any) -> RecordOutcome:
        outcome = put(repository, commit)
        if loses == "an answer" and outcome is RecordOutcome.CREATED and len(done) < 5:
            done.append(1)
            raise Unreachable("the answer was lost")
        return outcome

    with (
        mock.patch.object(copy_records._Round, "_write_down", dies),
        mock.patch.object(lm.eu, "put_commit_record", unheard),
    ):
        lm.work(8)
    assert done
    assert lm.head() == made[-1]
    assert not lm.torn()
    assert not missing(lm, made)
    assert not MirrorCommit.objects.filter(resent=True).exists()


def test_140_what_was_copied_after_a_restore_hides_nothing_of_what_was_copied_before(lm: Deployment) -> None:
    """More was copied since then than one proof sends at once, and all of it is there."""
    lost = restored_before_a_move(lm)
    change(paused=True)
    made = [lm.lake.commit(files={"b": b"%d" % n}) for n in range(12)]
    lm.arrive()
    lm.work(3)
    assert missing(lm, [*lost, *made]) == set(lost)
    change(paused=False)
    lm.work(1)
    assert not lm.torn()
    lm.work(6)
    assert lm.head() == made[-1]
    assert not missing(lm, [*lost, *made])


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("times", [1, 3])
def test_an_answer_that_nobody_heard_is_made_up_for_by_its_neighbours(lm: Deployment, times: int, lost: bool) -> None:
    """Not by all records that were accepted last: a destination that often fails would do nothing else."""
    made = [mirrored(lm, a=b"%d" % n) for n in range(12)]
    change(paused=True)
    made += [lm.lake.commit(files={"a": b"new %d" % n}) for n in range(6)]
    lm.arrive()
    lm.work(3)
    change(paused=False)
    if lost:
        lose_records(lm, made[14:])
    put, sent = lm.eu.put_commit_record, list[str]()

    def unheard(repository: str, commit: Any) -> RecordOutcome:
        outcome = put(repository, commit)
        sent.append(commit.id)
        if sent.count(commit.id) <= times and commit.id == made[16]:
            raise Unreachable("the answer was lost")
        return outcome

    with mock.patch.object(lm.eu, "put_commit_record", unheard):
        lm.work(8 if lost else 1)
    assert (lm.head(), lm.torn(), missing(lm, made)) == (made[-1], [], set())
    if not lost:
        assert len(sent) <= 6 + 5 * times


def backup(lm: Deployment) -> FakeRepository:
    return deepcopy(lm.eu.repositories["lake-eu"])


def duty(kind: str) -> int:
    return Duty.objects.get(kind=kind).pk


@pytest.mark.parametrize("ref", ["tag", "branch"])
def test_147_a_branch_that_somebody_moved_ahead_shows_nothing(lm: Deployment, ref: str) -> None:
    """To a commit that was copied after a restore: those below it are lost."""
    change(tags=True)
    mirrored(lm, a=b"0")
    saved = backup(lm)
    for number in range(1, 4):
        mirrored(lm, a=b"%d" % number)
    lm.eu.repositories["lake-eu"] = saved
    new = lm.lake.commit(files={"a": b"9"})
    lm.arrive()
    for kind in ("sense", "copy", "validate"):
        lm.run(duty(kind))
    saved.branches["main"] = new
    lm.run(duty("promote"))
    (lm.lake.repository.tags if ref == "tag" else lm.lake.repository.branches)["v1"] = new
    lm.work(4)
    assert (saved.tags if ref == "tag" else saved.branches)["v1"] == new
    assert not lm.torn()


def test_147_nor_does_one_that_somebody_made_where_we_would(lm: Deployment) -> None:
    change(tags=True)
    mirrored(lm, a=b"0")
    change(paused=True)
    saved = backup(lm)
    lm.lake.repository.branches["dev"] = lm.lake.repository.branches["main"]
    for number in range(3):
        lm.lake.commit("dev", {"a": b"lost %d" % number})
    lm.arrive()
    lm.work(3)
    lm.eu.repositories["lake-eu"] = saved
    made = [lm.lake.commit("dev", {"a": b"%d" % number}) for number in range(8)]
    lm.arrive()
    lm.work(3)
    saved.branches["dev"] = made[-1]
    change(paused=False)
    lm.work(4)
    lm.lake.repository.tags["v1"] = made[-1]
    lm.work(4)
    assert saved.tags == {"v1": made[-1]}
    assert not lm.torn()


@pytest.mark.parametrize("slow", [False, True])
def test_148_a_round_that_outlives_a_restore_shows_nothing_of_before(lm: Deployment, slow: bool) -> None:
    """lakeFS is away while it is restored, or everything takes long; another worker copies meanwhile."""
    mirrored(lm, a=b"0")
    saved = backup(lm)
    made = [mirrored(lm, a=b"%d" % number) for number in range(1, 4)]
    lm.lake.repository.branches |= {"aaa": made[0], "dev": made[-1]}
    lm.lake.commit("dev", {"b": b"9"})
    lm.arrive()
    lm.run(duty("sense"))
    lm.run(duty("validate"))
    plain, calls = lm.eu.get_repository, [0]

    def away(repository: str) -> Any:
        calls[0] += 1
        if calls[0] == 1:
            lm.eu.repositories["lake-eu"] = saved
            lm.run(duty("copy"), holder="worker-2")
            if not slow:
                raise Unreachable("it is restored")
        return plain(repository)

    with (
        mock.patch.object(lm.eu, "get_repository", away),
        mock.patch("mirroring.promote.destination_heads.LISTED_FOR", 0 if slow else 60),
    ):
        lm.run(duty("promote"))
    assert not lm.torn()
    lm.work(4)
    assert (lm.head(), lm.torn()) == (made[-1], [])


@pytest.fixture
def line(lm: Deployment) -> list[str]:
    """Copied and proven, and on no branch of the mirror yet: more than are doubted at once. main stands beside it."""
    root = lm.lake.repository.branches["main"]
    mirrored(lm, m=b"main")
    made = [root]
    for number in range(9):
        made.append(lm.lake.record_tree((made[-1],), lm.lake.trees[root], f"line {number}"))
    return made[1:]


def copy_all(lm: Deployment, line: list[str]) -> None:
    """Everything is ready for the move to the end of the line."""
    lm.arrive()
    for kind in ("sense", "copy", "validate"):
        lm.run(duty(kind))
    assert not missing(lm, line)
    assert MirrorCommit.objects.get(commit__sha=line[-1]).history


@contextmanager
def answering(lm: Deployment, call: str, error: Exception, *concerned: str) -> Iterator[list[str]]:
    """The destination gives this answer to each such call for one of these; gives all that it was called for."""
    plain, asked = getattr(lm.eu, call), list[str]()

    def answer(repository: str, one: Any, *given: Any, **named: Any) -> Any:
        name = one if isinstance(one, str) else one.id
        asked.append(name)
        if name in concerned:
            raise error
        return plain(repository, one, *given, **named)

    with mock.patch.object(lm.eu, call, answer):
        yield asked


@pytest.mark.parametrize("failing", [1, 6])
@pytest.mark.parametrize("error", [RemoteFailure("500"), Denied("403 of a firewall")])
@pytest.mark.parametrize("ref", ["a branch", "a tag"])
def test_169_a_record_that_fails_when_it_is_sent_once_more_is_its_own_branchs_matter(
    lm: Deployment, line: list[str], ref: str, error: Exception, failing: int
) -> None:
    """The names come before main; six in a row are taken for the destination."""
    change(tags=True)
    (lm.lake.repository.branches if ref == "a branch" else lm.lake.repository.tags)["a"] = line[-1]
    copy_all(lm, line)
    with answering(lm, "put_commit_record", error, *line[:failing]):
        for number in range(3):
            new = mirrored_in(lm, 2, n=b"%d" % number)
            assert lm.head() == new
    assert "a" not in {**backup(lm).branches, **backup(lm).tags}
    lm.work(3)
    assert {**backup(lm).branches, **backup(lm).tags}["a"] == line[-1]
    assert not Mirror.objects.get().proving_records


def mirrored_in(lm: Deployment, rounds: int, **files: bytes) -> str:
    commit = lm.lake.commit(files=files)
    lm.arrive()
    lm.work(rounds)
    return commit


def test_169_what_was_lost_is_found_although_another_record_fails(lm: Deployment, line: list[str]) -> None:
    lm.lake.repository.branches["a"] = line[-1]
    copy_all(lm, line)
    lose_records(lm, line)
    with answering(lm, "put_commit_record", RemoteFailure("500"), line[4]):
        lm.work(3)
        assert not lm.torn()
    lm.work(3)
    assert (lm.head("a"), missing(lm, line), lm.torn()) == (line[-1], set(), [])


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("ref", ["branches", "tags"])
def test_170_who_moves_a_ref_again_and_again_keeps_no_other_branch(lm: Deployment, ref: str, several: bool) -> None:
    """And if it is one and the same, the newest records are not asked for each time."""
    change(tags=True)
    places = [mirrored(lm, m=b"%d" % number) for number in range(8)]
    names = ["a", "b", "c"] if several else ["a"]
    there, source = lm.eu.repositories["lake-eu"], lm.lake.repository
    getattr(source, ref).update(dict.fromkeys(names, places[-1]))
    lm.work(2)
    for number in range(6):
        getattr(there, ref)[names[number % len(names)]] = places[number]
        new = lm.lake.commit(files={"n": b"%d" % number})
        lm.arrive()
        with answering(lm, "put_commit_record", RemoteFailure("500")) as asked:
            lm.work(1)
        assert lm.head() == new
        assert getattr(there, ref) == getattr(there, ref) | dict.fromkeys(names, places[-1])
    assert several or len(asked) <= 3


def test_170_a_restore_is_noticed_before_anything_moves_although_somebody_moves_a_branch(lm: Deployment) -> None:
    """The records of c were accepted after the backup, and wait; somebody has moved a before."""
    mirrored(lm, a=b"0")
    lm.lake.repository.branches["a"] = lm.lake.repository.branches["main"]
    lm.work(2)
    saved = backup(lm)
    mirrored(lm, "a", a=b"1")
    for _ in range(2):
        lm.eu.repositories["lake-eu"].branches["a"] = saved.branches["main"]
        lm.work(1)
    change(paused=True)
    lm.lake.repository.branches["c"] = lm.lake.repository.branches["main"]
    made = [lm.lake.commit("c", {"c": b"%d" % number}) for number in range(8)]
    lm.arrive()
    lm.work(3)
    lm.eu.repositories["lake-eu"] = saved
    change(paused=False)
    lm.work(1)
    assert not lm.torn()
    lm.work(4)
    assert (lm.head("c"), missing(lm, made), lm.torn()) == (made[-1], set(), [])


def test_171_a_branch_that_is_answered_by_404_for_ever_keeps_no_other_one(lm: Deployment) -> None:
    mirrored(lm, m=b"main")
    lm.lake.repository.branches["a"] = lm.lake.repository.branches["main"]
    with answering(lm, "create_branch", NotFound("404"), "a"), answering(lm, "put_commit_record", NotFound("")) as sent:
        for number in range(3):
            new = mirrored_in(lm, 2, n=b"%d" % number)
            assert lm.head() == new
        assert len(sent) <= 5 * 3
    lm.work(2)
    assert lm.head("a")


def test_171_where_404_tells_that_records_were_lost_they_are_sent_again(lm: Deployment, line: list[str]) -> None:
    """Between their proof and the call."""
    lm.lake.repository.branches["a"] = line[-1]
    copy_all(lm, line)
    plain = lm.eu.create_branch

    def restored(*given: Any, **named: Any) -> None:
        lose_records(lm, line[3:])
        lm.eu.create_branch = plain  # type: ignore[method-assign]
        plain(*given, **named)

    lm.eu.create_branch = restored  # type: ignore[method-assign]
    lm.run(duty("promote"))
    assert lm.head("a") == "" and MirrorCommit.objects.filter(record="pending").count() >= len(line)
    lm.work(2)
    assert (lm.head("a"), missing(lm, line), lm.torn()) == (line[-1], set(), [])


def test_91_what_a_dead_worker_heard_is_asked_until_the_destination_answers(lm: Deployment, line: list[str]) -> None:
    """Five answers in a row did not come: the rest of the newest records was not asked for."""
    lm.lake.repository.branches["a"] = line[-1]
    copy_all(lm, line)
    Mirror.objects.update(proving_records=True)
    with mock.patch.object(resend_records, "WINDOW", 12), mock.patch.object(resend_records, "AT_ONCE", 1):
        with answering(lm, "put_commit_record", Unreachable("no answer"), *line) as asked:
            lm.run(duty("promote"))
            assert (len(set(line).intersection(asked)), Mirror.objects.get().proving_records) == (5, True)
        lm.work(2)
    assert (lm.head("a"), Mirror.objects.get().proving_records) == (line[-1], False)
