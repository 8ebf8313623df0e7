"""What the source has deleted, or seems to have: does it go at the mirror? The numbers are those of
docs/promotion.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.db.models import F

from core.errors import Denied, Unreachable
from core.mirroring.branch_selection import OnUnselect
from core.mirroring.states import State
from core.types import Page
from db import clock
from jobs.models import Duty
from mirroring.promote import move_ref
from mirrors.models import Mirror, MirrorBranch, MoveIntent, Promotion, Repository, SourceBranch, SourceTag
from mirrors.queries.certificates import read_certificate
from mirrors.status.mirror import mirror_status
from tests.mirroring.test_recreated_source import before_tags, make_anew, recreated
from tests.mirroring.test_tags import source_tags, tags
from tests.mirrors.harness import NAMESPACE, Deployment
from tests.mirrors.promise import lose
from tests.mirrors.transitions.test_selection import commit_only, mirrored, select

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def a(lm: Deployment) -> str:
    """A commit on main and on x, with the tag v1 at it, at a mirror that follows tags."""
    Mirror.objects.update(tags=True)
    sha = mirrored(lm, a=b"1")
    lm.lake.repository.branches["x"] = source_tags(lm)["v1"] = sha
    lm.work(2)
    assert (lm.head("x"), tags(lm)) == (sha, {"v1": sha})
    return sha


def run(lm: Deployment, *kinds: str) -> None:
    for kind in kinds:
        lm.run(Duty.objects.get(kind=kind).pk)


def a_minute_passes() -> None:
    for model in (SourceBranch, SourceTag):
        model.objects.exclude(missing_since=None).update(missing_since=clock.now() - timedelta(seconds=61))


def missed_once(lm: Deployment, sha: str) -> None:
    """x and v1 are not in one look, a minute ago."""
    del lm.lake.repository.branches["x"], source_tags(lm)["v1"]
    lm.work(1)
    lm.lake.repository.branches["x"] = source_tags(lm)["v1"] = sha
    a_minute_passes()


@contextmanager
def after_the_first_page(lm: Deployment, happens: Callable[[], Any]) -> Iterator[None]:
    """Something happens while the source's branches are listed."""
    plain, happened = lm.us.list_branches, list[bool]()

    def list_branches(*given: Any, **page: Any) -> Any:
        if happened:
            return plain(*given, **page)
        answer = plain(*given, **{**page, "amount": 1})
        happened.append(True)
        happens()
        return answer

    with mock.patch.object(lm.us, "list_branches", list_branches):
        yield


def test_153_a_tag_is_not_missed_in_a_source_made_anew_after_its_branches_were_listed(lm: Deployment, a: str) -> None:
    missed_once(lm, a)
    with ExitStack() as stack, before_tags(lm, lambda: stack.enter_context(recreated(lm))):
        lm.work(1)
    assert tags(lm) == {"v1": a}
    assert SourceTag.objects.get().missing_looks == 1
    assert Repository.objects.get().tags_unseen_since


def test_153_a_branch_is_not_missed_in_a_list_over_the_moment_of_recreation(lm: Deployment, a: str) -> None:
    missed_once(lm, a)
    with ExitStack() as stack, after_the_first_page(lm, lambda: stack.enter_context(recreated(lm))):
        lm.work(1)
    assert lm.head("x") == a
    assert "main has moved on meanwhile" in Repository.objects.get().look_error


@pytest.mark.parametrize("when", ["known", "new"])
def test_153_what_is_deleted_beside_a_default_branch_that_moves_on_goes(lm: Deployment, a: str, when: str) -> None:
    """Our key may not list repositories, so the default branch has to tell whose list it was."""
    missed_once(lm, a)
    del lm.lake.repository.branches["x"], source_tags(lm)["v1"]
    unlisted = mock.patch.object(lm.us, "list_repositories", return_value=Page([]))
    with unlisted, after_the_first_page(lm, lambda: when == "new" and commit_only(lm, b=b"1")):
        lm.work(1)
    assert (lm.head("x"), tags(lm)) == ("", {})


@pytest.mark.parametrize("what", ["x", "v1"])
def test_154_what_was_missed_before_a_freeze_counts_no_more(lm: Deployment, a: str, what: str) -> None:
    """The look that finds another repository counts nothing; what the ones before it counted may be that one's."""
    missed_once(lm, a)
    real = lm.us.repositories["lake"]
    make_anew(lm)
    lm.work(1)
    assert Repository.objects.get().frozen_reason
    lm.us.repositories["lake"] = real
    Repository.objects.update(frozen_reason="")
    refs = real.branches if what == "x" else real.tags
    del refs[what]
    lm.work(1)
    assert (lm.head("x"), tags(lm)) == (a, {"v1": a})
    a_minute_passes()
    lm.work(1)
    assert (lm.head("x"), tags(lm)) == (("", {"v1": a}) if what == "x" else (a, {}))


def deleted(lm: Deployment) -> None:
    """The source has x and v1 no more, and that is known."""
    del lm.lake.repository.branches["x"], source_tags(lm)["v1"]
    for _ in range(2):
        run(lm, "sense")
        a_minute_passes()
    assert SourceBranch.objects.get(name="x").gone_at and SourceTag.objects.get().gone_at


@pytest.mark.parametrize(("ref", "turn"), [("x", 2), ("v1", 3)])
def test_155_what_the_source_has_again_before_the_call_is_not_deleted(
    lm: Deployment, a: str, ref: str, turn: int
) -> None:
    """x at a commit that has not arrived: readers would be without it until it has. It is asked when the round begins,
    for x, and for v1."""
    deleted(lm)
    plain, calls = move_ref.require_pinned, list[bool]()

    def returns(*given: Any) -> None:
        plain(*given)
        calls.append(True)
        if len(calls) == turn:
            lm.lake.repository.branches["x"] = source_tags(lm)["v1"] = a
            lm.lake.commit("x", {"y": b"1"})
            run(lm, "sense")

    with mock.patch.object(move_ref, "require_pinned", returns):
        run(lm, "promote")
    assert len(calls) >= turn
    assert (lm.head("x") if ref == "x" else tags(lm)) == (a if ref == "x" else {"v1": a})
    run(lm, "copy", "validate", "promote")
    assert lm.head("x") == (a if ref == "x" else "")
    lm.arrive()
    lm.work(2)
    assert (lm.head("x"), tags(lm)) == (lm.lake.repository.branches["x"], {"v1": a})


@pytest.mark.parametrize("ends", [Unreachable("no answer"), KeyboardInterrupt()])
def test_156_a_certificate_that_was_retired_for_a_deletion_which_was_not_made_is_written_again(
    lm: Deployment, a: str, ends: BaseException
) -> None:
    select(["main"], on_unselect=OnUnselect.DELETE)
    plain = lm.eu_store.put

    def put(uri: str, data: bytes) -> Any:
        plain(uri, data)
        if b"retired" in data:
            raise ends

    with mock.patch.object(lm.eu_store, "put", put):
        try:
            lm.work(1)
        except KeyboardInterrupt:
            Duty.objects.update(holder="", until=None)
    assert lm.head("x") == a
    assert read_certificate("eu-west-1", NAMESPACE, "x") is None
    select(["*"])
    lm.work(2)
    assert lm.head("x") == a
    certificate = read_certificate("eu-west-1", NAMESPACE, "x")
    assert certificate is not None and certificate.commit == a


def test_202_the_last_word_on_an_unselected_branch_counts_although_the_selection_is_as_before(
    lm: Deployment, a: str
) -> None:
    """It was to be deleted; then it is selected, and unselected to be kept, while a round is about to delete it."""
    select(["main"], on_unselect=OnUnselect.DELETE)
    plain, done = move_ref._are_intended, list[bool]()

    def later(ref: Any, *given: Any, **more: Any) -> bool:
        if ref.name == "x" and not done:
            done.append(True)
            select()
            select(["main"])
        return plain(ref, *given, **more)

    with mock.patch.object(move_ref, "_are_intended", later):
        run(lm, "promote")
    assert done
    lm.work(2)
    assert lm.head("x") == a
    select()
    select(["main"], on_unselect=OnUnselect.DELETE)
    lm.work(2)
    assert lm.head("x") == ""


@pytest.mark.parametrize("paused", [True, False])
def test_206_a_branch_that_somebody_made_is_not_deleted_where_the_source_had_one_for_a_while(
    lm: Deployment, a: str, paused: bool
) -> None:
    """It is at the very commit where the source's was, which the mirror never had: gone before it was made, or in a
    pause."""
    branches = lm.lake.repository.branches
    if paused:
        Mirror.objects.update(paused=True)
        lm.eu.repositories["lake-eu"].branches["y"] = a
    branches["y"] = a
    run(lm, "sense")
    del branches["y"]
    for _ in range(2):
        run(lm, "sense")
        a_minute_passes()
    assert SourceBranch.objects.get(name="y").gone_at
    Mirror.objects.update(paused=False)
    lm.eu.repositories["lake-eu"].branches["y"] = a
    lm.work(3)
    assert lm.head("y") == a and MirrorBranch.objects.get(name="y").stray


def deleted_at_both(lm: Deployment, branch: str) -> None:
    """The source deletes a branch, and so does the mirror."""
    del lm.lake.repository.branches[branch]
    for _ in range(2):
        run(lm, "sense")
        a_minute_passes()
    lm.work(1)
    assert lm.head(branch) == ""


@pytest.mark.parametrize("unselected", [True, False])
def test_208_what_somebody_made_deleted_and_made_where_ours_had_been_is_theirs(
    lm: Deployment, a: str, unselected: bool
) -> None:
    there, before = lm.eu.repositories["lake-eu"].branches, lm.lake.repository.commits[a].parents[0]
    if unselected:
        select(["main"], on_unselect=OnUnselect.DELETE)
        lm.work(2)
    else:
        deleted_at_both(lm, "x")
    for theirs in (before, "", a, before):
        there["x"] = theirs
        if not theirs:
            del there["x"]
        lm.work(2)
        assert lm.head("x") == theirs
    assert MirrorBranch.objects.get(name="x").stray


@pytest.mark.parametrize(("days", "again"), [(0, False), (2, False), (0, True)])
def test_210_a_branch_that_came_back_with_a_backup_stays_ours_however_often_its_deletion_fails(
    lm: Deployment, a: str, days: int, again: bool
) -> None:
    """Also where the source has it again for a while, at what is not whole."""
    backup = deepcopy(lm.eu.repositories["lake-eu"])
    deleted_at_both(lm, "x")
    MoveIntent.objects.update(at=F("at") - timedelta(days=days))
    lm.eu.repositories["lake-eu"] = backup
    if again:
        lm.lake.repository.branches["x"] = commit_only(lm, b=b"1")
        lose(lm, lm.lake.repository.branches["x"], "b")
        lm.work(2)
        assert (lm.head("x"), MirrorBranch.objects.get(name="x").stray) == (a, False)
        del lm.lake.repository.branches["x"]
        for _ in range(2):
            run(lm, "sense")
            a_minute_passes()
    with mock.patch.object(lm.eu, "delete_branch", side_effect=Denied("it is protected")):
        lm.work(2)
        branches = {branch.name: branch.state for branch in mirror_status(Mirror.objects.get()).branches}
        assert (lm.head("x"), branches["x"]) == (a, State.LEAVING)
    lm.work(2)
    assert lm.head("x") == ""


@pytest.mark.parametrize("ours", [True, False])
def test_212_a_branch_that_was_made_after_our_books_were_saved_is_ours_by_its_certificate(
    lm: Deployment, a: str, ours: bool
) -> None:
    """The source has deleted it since."""
    if not ours:
        deleted_at_both(lm, "x")
        lm.lake.repository.branches["x"] = lm.eu.repositories["lake-eu"].branches["x"] = a
        run(lm, "sense")
    for model, names in ((MirrorBranch, {"name": "x"}), (Promotion, {"branch": "x"}), (MoveIntent, {"name": "x"})):
        model.objects.filter(**names).delete()
    del lm.lake.repository.branches["x"]
    for _ in range(2):
        run(lm, "sense")
        a_minute_passes()
    lm.work(2)
    assert lm.head("x") == ("" if ours else a)
    assert ("moved-by-somebody" in {move.why for move in Promotion.objects.filter(branch="x")}) is not ours


def test_220_a_branch_that_somebody_puts_where_they_had_put_ours_is_theirs(lm: Deployment, a: str) -> None:
    repository = lm.eu.repositories["lake-eu"]
    theirs = lm.lake.record_tree((a,), lm.lake.trees[a], "theirs")
    repository.commits[theirs] = lm.lake.repository.commits.pop(theirs)
    repository.branches["x"] = theirs
    new = commit_only(lm, "x", c=b"3")
    lm.work(2)
    assert lm.head("x") == new
    deleted_at_both(lm, "x")
    repository.branches["x"] = theirs
    lm.work(3)
    assert (lm.head("x"), MirrorBranch.objects.get(name="x").stray) == (theirs, True)
