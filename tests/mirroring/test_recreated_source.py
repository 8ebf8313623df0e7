"""A repository is made anew under the source's name, and a server's cache still gives the old one's creation date.

Of its history nothing is taken before a second look, more than 10 s later, has asked once more. The numbers are those
of docs/promotion.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest

from core.errors import Denied, RemoteFailure, Unauthenticated, Unreachable
from core.mirroring.states import State
from core.types import Page
from db import clock
from jobs.models import Duty
from mirrors.models import Mirror, Repository, SourceBranch
from mirrors.status.mirror import mirror_status
from mirrors.status.tags import tag_readings
from tests.fakes import FakeStore, Lake
from tests.mirroring.test_found_by_breaking import mirrored
from tests.mirrors.harness import Deployment, age_roots, told_from_cache, untold
from tests.mirrors.services.test_rebuild import lose_database, rebuild

pytestmark = pytest.mark.django_db(transaction=True)


def make_anew(lm: Deployment) -> Lake:
    """Another repository under the name, with a root on main."""
    old = lm.us.repositories.pop("lake").info
    made = Lake(lm.us, FakeStore())
    made.repository.branches["main"] = made._record((), "", "Repository created again", {})
    lm.us.repositories["lake"].info = replace(made.repository.info, creation_date=old.creation_date + 100)
    return made


@contextmanager
def recreated(lm: Deployment) -> Iterator[Lake]:
    """Another repository under the name, with a root on main, while all who ask are told of the old one."""
    old, made = lm.us.repositories["lake"].info, make_anew(lm)
    with told_from_cache(lm.us, lambda name: replace(made.repository.info, creation_date=old.creation_date)):
        yield made


def failing(lm: Deployment, is_broken: Callable[[str], bool]) -> Any:
    """Logs come one commit a page; those that are broken fail."""
    plain = lm.us.log_commits

    def log(repository: str, commit: str, **page: Any) -> Any:
        if is_broken(commit):
            raise RemoteFailure("500")
        return plain(repository, commit, after=page.get("after", ""), amount=1)

    return mock.patch.object(lm.us, "log_commits", log)


def test_85_a_slow_look_does_not_count_against_the_time_until_the_second_one(lm: Deployment) -> None:
    head, now = mirrored(lm, a=b"1"), clock.now
    times = iter([now() - timedelta(seconds=20)])  # when the look began; all after that is now
    with recreated(lm):
        with mock.patch("mirroring.sense.branches.clock.now", lambda: next(times, None) or now()):
            lm.run(Duty.objects.get(kind="sense").pk)
        lm.work(1)
        assert lm.head() == head


@pytest.mark.parametrize("rebuilt", [False, True])
def test_86_a_log_that_breaks_off_does_not_make_the_root_that_it_led_to_known(lm: Deployment, rebuilt: bool) -> None:
    """The next look would find everything else related to that root."""
    head = mirrored(lm, a=b"1")
    if rebuilt:
        lose_database()
        rebuild()
    known = Repository.objects.get().commits.count()
    with recreated(lm) as made:
        root = made.repository.branches["main"]
        x, y = made._record((root,), "", "x", {}), made._record((root,), "", "y", {})
        made.repository.branches["main"] = made._record((x, y), "", "merge", {})
        with failing(lm, lambda commit: commit in (x, y)):
            lm.work(1)
        assert Repository.objects.get().commits.count() == known
        lm.work(1)
        assert lm.head() == head


@pytest.mark.parametrize("outage", [False, True])
def test_111_the_time_that_another_history_has_waited_counts_for_none_but_itself(lm: Deployment, outage: bool) -> None:
    head = mirrored(lm, a=b"1")
    lm.lake.repository.branches["orphan"] = lm.lake._record((), "", "a root of its own", {})
    lm.work(1)
    age_roots(hours=1)
    if outage:
        with mock.patch.object(lm.us, "list_branches", side_effect=Unreachable("it is being recreated")):
            lm.work(1)
    with recreated(lm):
        lm.work(2)
        assert lm.head() == head


def test_111_a_history_of_its_own_that_was_not_there_in_the_look_before_waits_anew(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    branches = lm.lake.repository.branches
    orphan = branches["orphan"] = lm.lake._record((), "", "a root of its own", {})
    lm.work(1)
    age_roots(hours=1)
    del branches["orphan"]
    lm.work(1)
    branches["orphan"] = orphan
    lm.work(1)
    assert lm.head("orphan") == ""
    orphan = branches["orphan"] = lm.lake._record((orphan,), "", "it goes on meanwhile", {})
    age_roots(seconds=11)
    lm.work(2)
    assert lm.head("orphan") == orphan


def test_128_a_source_that_could_not_be_read_yet_is_known_by_its_heads(lm: Deployment) -> None:
    lm.lake.commit(files={"a": b"1"})
    with failing(lm, lambda _: True):
        lm.work(1)
    with recreated(lm):
        lm.work(3)
        assert (lm.head(), Repository.objects.get().commits.count()) == ("", 0)
        assert mirror_status(Mirror.objects.get()).state == State.RETRYING
        assert "a second check will show" in Repository.objects.get().look_error
    lm.work(1)
    assert mirror_status(Mirror.objects.get()).state == State.FROZEN


def test_128_heads_of_the_other_repository_are_not_known_once_it_was_found_out(lm: Deployment) -> None:
    """An operator says that the old one is back, and a cache says so too."""
    head = mirrored(lm, a=b"1")
    lose_database()
    rebuild()
    with recreated(lm) as made:
        lm.work(1)
    lm.work(1)
    repository = Repository.objects.get()
    assert repository.frozen_reason
    Repository.objects.update(frozen_reason="")
    stale = replace(made.repository.info, creation_date=repository.creation_date)
    with told_from_cache(lm.us, lambda name: stale):
        lm.work(2)
        assert lm.head() == head


def test_128_the_same_repository_is_read_once_it_answers_wherever_it_went_on_to(lm: Deployment) -> None:
    lm.lake.commit(files={"a": b"1"})
    with failing(lm, lambda _: True):
        lm.work(1)
    new = lm.lake.commit(files={"b": b"2"})
    lm.arrive()
    lm.work()
    assert (lm.head(), mirror_status(Mirror.objects.get()).state) == (new, State.UP_TO_DATE)


def test_128_it_is_read_after_a_second_look_if_nothing_of_what_was_seen_is_left(lm: Deployment) -> None:
    first = lm.lake.commit(files={"a": b"1"})
    lm.lake.commit(files={"b": b"2"})
    with failing(lm, lambda _: True):
        lm.work(1)
    lm.lake.repository.branches["main"] = first
    lm.arrive()
    lm.work(2)
    assert lm.head() == ""
    age_roots(seconds=11)
    lm.work(2)
    assert (lm.head(), mirror_status(Mirror.objects.get()).state) == (first, State.UP_TO_DATE)


def test_118_other_branches_go_on_while_a_history_of_its_own_waits(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    lm.lake.repository.branches["orphan"] = orphan = lm.lake._record((), "", "a root of its own", {})
    new = lm.lake.commit(files={"b": b"2"})
    lm.arrive()
    lm.work(1)
    assert (lm.head(), lm.head("orphan")) == (new, "")
    assert mirror_status(Mirror.objects.get()).state == State.RETRYING
    assert SourceBranch.objects.get(name="orphan").unread_head == orphan
    assert "a second check will show" in Repository.objects.get().look_error
    age_roots(seconds=11)
    lm.work(2)
    assert (lm.head("orphan"), mirror_status(Mirror.objects.get()).state) == (orphan, State.UP_TO_DATE)


def test_118_while_the_default_branch_waits_so_do_all_and_none_is_called_up_to_date(lm: Deployment) -> None:
    """Its branches may have known commits: somebody may have put them into a repository that was made anew."""
    head = mirrored(lm, a=b"1")
    lm.lake.repository.branches["dev"] = lm.lake.repository.branches["gone"] = head
    lm.work(2)
    new = lm.lake.commit("dev", {"b": b"2"})
    lm.arrive()
    root = lm.lake._record((), "", "Repository created again", {})
    first = lm.lake.repository.branches["main"] = lm.lake._record((root,), "", "its first commit", {})
    del lm.lake.repository.branches["gone"]
    lm.work(1)
    assert (lm.head(), lm.head("dev")) == (head, head)
    unread = SourceBranch.objects.exclude(unread_head="").values_list("name", "unread_head")
    assert dict(unread) == {"main": first, "dev": new}
    assert SourceBranch.objects.get(name="gone").missing_looks == 0
    age_roots(seconds=11)
    lm.work(2)
    assert (lm.head(), lm.head("dev")) == (first, new)


def test_118_while_the_default_branch_can_not_be_read_a_history_of_its_own_makes_all_wait(lm: Deployment) -> None:
    """Nobody can tell whose it is: neither the one nor the other is known."""
    head = mirrored(lm, a=b"1")
    lm.lake.repository.branches["dev"] = head
    lm.work(1)
    with recreated(lm) as made:
        root = made.repository.branches["main"]
        made.repository.branches["other"] = root
        main = made.repository.branches["main"] = made._record((root,), "", "first", {})
        with failing(lm, lambda commit: commit == main):
            lm.work(1)
    assert SourceBranch.objects.get(name="dev").missing_looks == 0
    assert (lm.head(), lm.head("other")) == (head, "")


def test_86_a_root_that_a_branch_brings_in_by_a_merge_waits_for_nothing(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    other = lm.lake._record((), "", "another root", {})
    lm.lake.repository.branches["other"] = other
    merged = lm.lake._record((lm.lake.repository.branches["main"], other), "", "merge", {})
    lm.lake.repository.branches["main"] = merged
    lm.work()
    assert (lm.head(), lm.head("other"), Repository.objects.get().look_error) == (merged, other, "")


def test_86_a_history_of_its_own_that_can_not_be_read_holds_up_nobody_else(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    root = lm.lake._record((), "", "a root of its own", {})
    x, y = lm.lake._record((root,), "", "x", {}), lm.lake._record((root,), "", "y", {})
    odd = lm.lake.repository.branches["odd"] = lm.lake._record((x, y), "", "merge", {})
    with failing(lm, lambda commit: commit in (x, y)):
        for number in range(4):
            new = lm.lake.commit(files={"b": b"%d" % number})
            lm.arrive()
            lm.work(1)
            assert (lm.head(), lm.head("odd")) == (new, "")
    lm.work(1)
    age_roots(seconds=11)
    lm.work()
    assert (lm.head(), lm.head("odd")) == (new, odd)


def test_87_what_a_broken_off_look_left_says_nothing_about_the_source_of_the_next(lm: Deployment) -> None:
    head = mirrored(lm, a=b"1")
    lose_database()
    rebuild()
    with untold(lm.us):
        lm.run(Duty.objects.get(kind="sense").pk)
    assert Repository.objects.get().unplaced.filter(sha=head).exists()
    with recreated(lm):
        lm.work(2)
        assert lm.head() == head


def test_87_a_look_that_goes_on_after_a_broken_off_one_knows_its_source_by_the_head_or_the_root(lm: Deployment) -> None:
    head = mirrored(lm, a=b"1")
    lose_database()
    rebuild()
    with untold(lm.us):
        lm.run(Duty.objects.get(kind="sense").pk)
    lm.work(2)
    assert Repository.objects.get().look_error == ""
    assert Repository.objects.get().commits.filter(sha=head).exists()


@pytest.mark.parametrize("broken", [False, True])
def test_88_tags_of_a_history_of_their_own_are_left_out_and_named_and_the_others_go_on(
    lm: Deployment, broken: bool
) -> None:
    Mirror.objects.update(tags=True)
    a = mirrored(lm, a=b"1")
    off = lm.lake.record_tree((a,), lm.lake.trees[a], "on no branch")
    root = lm.lake._record((), "", "a root of its own", {})
    x, y = lm.lake._record((root,), "", "x", {}), lm.lake._record((root,), "", "y", {})
    lm.lake.repository.tags.update(v1=off, odd=lm.lake._record((x, y), "", "merge", {}))
    lm.arrive()
    with failing(lm, lambda commit: broken and commit in (x, y)):
        lm.work(4)
    assert lm.eu.repositories["lake-eu"].tags == {"v1": off}
    assert not Repository.objects.get().commits.filter(sha=root).exists()
    assert "left out: odd" in Duty.objects.get(kind="sense").outcome


def test_118_no_tag_moves_in_a_look_at_a_source_whose_main_is_a_strangers(lm: Deployment) -> None:
    Mirror.objects.update(tags=True)
    a, b = mirrored(lm, a=b"1"), mirrored(lm, b=b"1")
    lm.lake.repository.tags["v1"] = a
    lm.work(2)
    with recreated(lm) as made:
        made.repository.tags["v1"] = b
        lm.work(2)
        assert (lm.head(), lm.eu.repositories["lake-eu"].tags) == (b, {"v1": a})


def before_tags(lm: Deployment, happens: Callable[[], Any]) -> Any:
    """Something happens after the source's branches were listed and before its tags are."""
    plain = lm.us.list_tags

    def tags(repository: str, **page: Any) -> Any:
        happens()
        return plain(repository, **page)

    return mock.patch.object(lm.us, "list_tags", tags)


@pytest.mark.parametrize("commits", [0, 1])
def test_151_no_tag_follows_a_source_that_is_made_anew_after_its_branches_were_listed(
    lm: Deployment, commits: int
) -> None:
    """Old commits were pushed into it, so what the tag names is known."""
    Mirror.objects.update(tags=True)
    a, b = mirrored(lm, a=b"1"), mirrored(lm, b=b"1")
    lm.lake.repository.tags["v1"] = a
    lm.work(2)
    with ExitStack() as stack:

        def happens() -> None:
            made = stack.enter_context(recreated(lm))
            made.repository.tags["v1"] = b
            for _ in range(commits):
                made.repository.branches["main"] = made._record((made.repository.branches["main"],), "", "x", {})
                made.repository.tags["v2"] = made.repository.branches["main"]

        with before_tags(lm, happens):
            lm.run(Duty.objects.get(kind="sense").pk)
        lm.run(Duty.objects.get(kind="promote").pk)
        assert (lm.head(), lm.eu.repositories["lake-eu"].tags) == (b, {"v1": a})
        assert {tag.status for tag in tag_readings(Mirror.objects.get(), amount=3)} == {"Unreadable at source"}


@pytest.mark.parametrize(("readable", "listed"), [(True, False), (False, True), (False, False)])
def test_151_tags_follow_beside_a_default_branch_that_moves_on_all_the_time(
    lm: Deployment, readable: bool, listed: bool
) -> None:
    """Where our key may not list repositories, its history has to tell whose tags these are."""
    Mirror.objects.update(tags=True)
    a, b = mirrored(lm, a=b"1"), mirrored(lm, b=b"1")
    lm.lake.repository.tags["v1"] = a
    lm.work(2)
    lm.lake.repository.tags["v1"] = b
    moved: list[str] = []
    main_moves = before_tags(lm, lambda: moved.append(lm.lake.commit("main", {"c": b"1"})))
    listing = nullcontext() if listed else mock.patch.object(lm.us, "list_repositories", return_value=Page([]))
    with main_moves, listing, failing(lm, lambda commit: not readable and commit in moved):
        lm.run(Duty.objects.get(kind="sense").pk)
    lm.run(Duty.objects.get(kind="promote").pk)
    assert lm.eu.repositories["lake-eu"].tags == {"v1": b if readable or listed else a}
    lm.arrive()
    lm.work(3)
    assert (lm.head(), lm.eu.repositories["lake-eu"].tags) == (moved[0], {"v1": b})


@pytest.mark.parametrize("unlisted", [None, Denied("fs:ListRepositories"), Unauthenticated("401"), Page([])])
def test_152_another_repository_is_known_by_its_date_where_no_log_tells_of_it(lm: Deployment, unlisted: Any) -> None:
    """lakeFS answers 401 or 403 if our key may list none, and leaves out those that it may not list."""
    Mirror.objects.update(tags=True)
    a, b = mirrored(lm, a=b"1"), mirrored(lm, b=b"1")
    lm.lake.repository.tags["v1"] = a
    lm.work(2)
    make_anew(lm).repository.tags["v1"] = b
    listing = mock.patch.object(lm.us, "list_repositories", side_effect=[unlisted] * 9) if unlisted else nullcontext()
    with listing, failing(lm, lambda commit: True):
        lm.work(2)
    assert (lm.head(), lm.eu.repositories["lake-eu"].tags) == (b, {"v1": a})
    assert mirror_status(Mirror.objects.get()).state is State.FROZEN


@pytest.mark.parametrize("looks", [0, 1])
def test_118_main_is_partly_read_and_a_stranger_stands_beside_it(lm: Deployment, looks: int) -> None:
    a, b = mirrored(lm, a=b"1"), mirrored(lm, b=b"1")
    lm.lake.repository.branches["dev"] = a
    lm.work(2)
    with recreated(lm) as made:
        first = made._record((made.repository.branches["main"],), "", "first", {})
        made.repository.branches["main"] = made._record((first,), "", "second", {})
        with failing(lm, lambda commit: commit == first):
            lm.work(looks)
            made.repository.branches["other"] = made._record((), "", "a root", {})
            made.repository.branches["dev"] = b
            lm.work(1)
    assert lm.head("dev") == a


@pytest.mark.parametrize("rebuilt", [False, True])
def test_130_heads_that_were_unread_in_a_stale_look_do_not_make_the_other_repository_known(
    lm: Deployment, rebuilt: bool
) -> None:
    head = ""
    if rebuilt:
        head = mirrored(lm, a=b"1")
        lose_database()
        rebuild()
    else:
        lm.lake.commit(files={"a": b"1"})
        with failing(lm, lambda _: True):
            lm.work(1)
    with recreated(lm):
        with failing(lm, lambda _: True):
            lm.work(1)
        lm.work(2)
        assert lm.head() == head


@pytest.mark.parametrize("known", [False, True])
def test_130_two_branches_may_come_to_one_unread_head_one_after_the_other(lm: Deployment, known: bool) -> None:
    if known:
        mirrored(lm, a=b"1")
    branches = lm.lake.repository.branches
    branches["one"] = branches["two"] = lm.lake.commit(files={"b": b"2"})
    with failing(lm, lambda commit: commit == branches["one"]):
        branches["two"] = lm.lake._record((), "", "another", {})
        lm.work(1)
        branches["two"] = branches["one"]
        lm.work(1)
        unread = Repository.objects.get().branches.filter(name__in=["one", "two"])
        assert set(unread.values_list("unread_head", flat=True)) == {branches["one"]}


def test_a_rebuilt_branch_was_looked_at_although_its_head_can_not_be_read(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    lose_database()
    rebuild()
    with failing(lm, lambda _: True):
        lm.work(3)
        (branch,) = mirror_status(Mirror.objects.get()).branches
        assert SourceBranch.objects.get().unread_head == branch.mirror_head
        assert branch.reason_code == "head_not_proven"


def test_118_a_branch_that_was_unread_stays_so_in_a_look_from_which_nothing_follows(lm: Deployment) -> None:
    lm.lake.repository.branches["dev"] = mirrored(lm, a=b"1")
    lm.work(2)
    new = lm.lake.commit("dev", {"b": b"2"})
    with failing(lm, lambda commit: commit == new):
        lm.work(1)
    with recreated(lm):  # where it is not
        lm.run(Duty.objects.get(kind="sense").pk)
        assert SourceBranch.objects.get(name="dev").unread_head == new
