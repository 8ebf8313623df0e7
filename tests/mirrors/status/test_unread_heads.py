"""A source's branch went on to a head whose history can't be read: it is not called up to date until it was.

The numbers are those of docs/promotion.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.db.models import F
from django.test import Client

from core.errors import Denied, LakeMirrorError, RemoteFailure, Throttled, Unreachable
from core.mirroring.states import State
from db import clock
from deployment import config
from jobs.models import Duty
from mirroring.sense.read_log import REFUSED
from mirrors.models import LagBreach, Mirror, Promotion, Repository, SourceBranch
from mirrors.queries.branch_positions import branch_lags
from mirrors.queries.unreplicated import losses_of
from mirrors.status.mirror import MirrorStatus, brief_statuses, mirror_status
from mirrors.transitions.rpo_breaches import targets_kept
from rbac.models import User
from tests.api import MIRRORS, Api
from tests.mirroring.test_found_by_breaking import branches, mirrored
from tests.mirroring.test_sensor import settings
from tests.mirrors.harness import Deployment, one_by_one
from tests.mirrors.services.test_rebuild import lose_database, rebuild

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def unreadable(lm: Deployment, *commits: str, error: LakeMirrorError | None = None) -> Iterator[None]:
    plain = lm.us.log_commits

    def log(repository: str, commit: str, **page: Any) -> Any:
        if commit in commits:
            raise error or RemoteFailure("500")
        return plain(repository, commit, **page)

    with mock.patch.object(lm.us, "log_commits", log):
        yield


def both(tell: Callable[[MirrorStatus], Any]) -> Any:
    """What the page and the list say alike."""
    mirror = Mirror.objects.get()
    told = tell(mirror_status(mirror))
    assert tell(brief_statuses([mirror])[0]) == told
    return told


def read_main(found: MirrorStatus) -> tuple[Any, ...]:
    main = next(one for one in found.branches if one.name == "main")
    return found.state, found.reason_code, found.pending, found.behind, main.state, main.pending, main.source_head


@pytest.fixture
def new(lm: Deployment) -> str:
    """main went on to this; dev did not."""
    mirrored(lm, a=b"1")
    lm.lake.repository.branches["dev"] = lm.lake.repository.branches["main"]
    lm.work(2)
    new = lm.lake.commit("main", {"b": b"2"})
    lm.arrive()
    return new


def test_89_a_branch_that_went_on_to_what_can_not_be_read_is_behind_until_it_is_read(lm: Deployment, new: str) -> None:
    with unreadable(lm, new):
        lm.work(2)
        assert both(read_main) == (State.RETRYING, "source_unreadable", 1, 1, State.RETRYING, 1, new)
        newer = lm.lake.commit("main", {"c": b"3"})
        lm.arrive()
        since = SourceBranch.objects.get(name="main").unread_since
        with unreadable(lm, newer):
            lm.work(1)
        assert SourceBranch.objects.get(name="main").unread_since == since
    assert both(lambda found: found.branches[-1].source_head) == newer
    lm.work()
    assert (lm.head(), lm.torn(), both(lambda found: found.state)) == (newer, [], State.UP_TO_DATE)
    assert SourceBranch.objects.get(name="main").unread_since is None


def test_89_its_lag_counts_from_when_that_head_was_seen_and_breaks_the_target(lm: Deployment, new: str) -> None:
    Mirror.objects.update(rpo_seconds=60, created_at=F("created_at") - timedelta(days=1))
    with unreadable(lm, new):
        lm.work(1)
        SourceBranch.objects.filter(name="main").update(unread_since=F("unread_since") - timedelta(minutes=10))
        lm.work(1)
    assert both(lambda found: (found.state, found.lag >= 600)) == (State.LATE, True)
    assert "at least 1 commit and 10 min behind" in mirror_status(Mirror.objects.get()).sentence
    assert list(LagBreach.objects.values_list("branch", "ended_at")) == [("main", None)]
    lags = {lag.branch: lag.first for lag in branch_lags([Mirror.objects.get()])}
    assert lags["dev"] is None
    assert lags["main"] is not None
    assert (lags["main"].number, lags["main"].seen_at) == (1, SourceBranch.objects.get(name="main").unread_since)


def test_89_a_branch_that_goes_back_to_what_was_read_is_up_to_date(lm: Deployment, new: str) -> None:
    with unreadable(lm, new):
        lm.work(1)
        lm.lake.repository.branches["main"] = lm.head()
        lm.work(1)
    assert both(lambda found: found.state) == State.UP_TO_DATE


def test_89_a_new_branch_that_can_not_be_read_is_told_of(lm: Deployment, new: str) -> None:
    lm.lake.repository.branches["fix"] = lm.lake.record_tree((new,), lm.lake.trees[new], "fix")
    with unreadable(lm, lm.lake.repository.branches["fix"]):
        lm.work()
        fix = next(one for one in mirror_status(Mirror.objects.get()).branches if one.name == "fix")
        assert (fix.state, fix.pending, "fix is not in eu-west-1 yet" in fix.sentence) == (State.RETRYING, 1, True)
        assert (lm.head(), lm.head("fix")) == (new, "")
    lm.work()
    assert (lm.head("fix") != "", both(lambda found: found.state)) == (True, State.UP_TO_DATE)


def seen_earlier(branch: str, **earlier: int) -> None:
    """It began, and is unread, for so much longer."""
    past = timedelta(**earlier)
    SourceBranch.objects.filter(name=branch).update(
        unread_since=F("unread_since") - past, begun_at=F("begun_at") - past
    )


@pytest.mark.parametrize("again", [False, True])
def test_89_the_time_that_a_branch_was_late_while_it_was_unread_counts(lm: Deployment, new: str, again: bool) -> None:
    yesterday = clock.now() - timedelta(days=1)
    Mirror.objects.update(rpo_seconds=60, watched_since=yesterday, created_at=yesterday)
    lm.work(2)
    if again:
        deleted_at_source(lm, "dev")
        lm.work(2)
    name = "dev" if again else "fix"
    fix = made_again(lm, name, new)
    soon = clock.now() + timedelta(minutes=10)
    with unreadable(lm, fix):
        lm.work(1)
        seen_earlier(name, minutes=10)
        lm.work(1)
        unread = targets_kept(Mirror.objects.get(), [name], soon)[name].share
    lm.work()
    Repository.objects.update(looked_at=soon)  # else nobody knew of what is to come
    Mirror.objects.update(destination_looked_at=soon)
    kept = targets_kept(Mirror.objects.get(), [name], soon)[name]
    assert (lm.head(name), kept.share is not None and 0.4 < kept.share < 0.6) == (fix, True)
    assert unread is not None
    assert unread < 0.1


def test_90_after_the_database_was_lost_a_branch_that_went_on_is_behind_as_well(lm: Deployment, new: str) -> None:
    lose_database()
    rebuild()
    with unreadable(lm, new):
        lm.work(4)
        assert both(read_main)[:2] == (State.RETRYING, "source_unreadable")
    lm.work()
    assert (lm.head(), both(lambda found: found.state)) == (new, State.UP_TO_DATE)


def test_110_a_head_that_can_not_be_read_would_be_lost(lm: Deployment, new: str, owner: User) -> None:
    lm.lake.repository.branches["also"] = new
    with unreadable(lm, new):
        lm.work(2)
        found = losses_of(Mirror.objects.get(), "", 10)
        branches = [(place.key[1], loss.tally.commits, loss.at_least) for place, loss in found.branches]
        assert (found.behind, found.together.tally.commits, branches) == (2, 1, [("also", 1, True), ("main", 1, True)])
        assert (found.together.missing.objects, found.together.missing.unchecked) == (None, 1)
        assert found.together.tally.oldest == SourceBranch.objects.get(name="main").unread_since
        answer = Api(owner).call("GET", f"{MIRRORS}/lake-eu/loss")[1]
        assert {row["source_head"] for row in answer["results"]} == {new}
        page = Client()
        page.force_login(owner)
        assert "at least 1 commit by unknown would be lost" in page.get("/mirrors/lake-eu/").content.decode()
    lm.work()
    assert losses_of(Mirror.objects.get(), "", 10).together.tally.commits == 0


@pytest.mark.parametrize("error", [Unreachable("timed out"), Denied("403"), Throttled("429")])
def test_112_a_log_that_never_answers_or_is_refused_holds_up_no_other_branch(
    lm: Deployment, new: str, error: LakeMirrorError
) -> None:
    fix = lm.lake.repository.branches["fix"] = lm.lake.record_tree((new,), lm.lake.trees[new], "fix")
    with unreadable(lm, fix, error=error):
        lm.work(2)
        assert (lm.head(), lm.head("fix"), both(lambda found: found.state)) == (new, "", State.RETRYING)
        newer = lm.lake.commit("main", {"c": b"3"})
        lm.arrive()
        lm.work(1)
        assert lm.head() == newer
    lm.work()
    assert (lm.head("fix"), both(lambda found: found.state)) == (fix, State.UP_TO_DATE)


def many(lm: Deployment, number: int) -> set[str]:
    """Heads of new branches, each with a commit of its own."""
    main = lm.lake.repository.branches["main"]
    heads = [lm.lake.record_tree((main,), lm.lake.trees[main], f"{n}") for n in range(number)]
    lm.lake.repository.branches.update({f"b{n}": head for n, head in enumerate(heads)})
    return set(heads)


def look(lm: Deployment, asked: list[str]) -> str:
    """One look; `asked`: of which commits it asks the log, without an answer."""

    def log(repository: str, commit: str, **page: Any) -> Any:
        asked.append(commit)
        raise Unreachable("timed out")

    with mock.patch.object(lm.us, "log_commits", log), one_by_one():
        return lm.run(Duty.objects.get(kind="sense").pk)


def test_113_a_source_that_gives_no_log_costs_few_time_outs_a_look_and_each_branch_has_its_turn(
    lm: Deployment, new: str
) -> None:
    heads, asked, most = {*many(lm, 20), new}, list[str](), 0
    for _ in range(22):
        before = len(asked)
        look(lm, asked)
        most = max(most, len(asked) - before)
    assert most <= REFUSED + config.current().commit_sensor.branches_scanner_concurrency_limit
    assert set(asked) == heads
    assert set(SourceBranch.objects.exclude(unread_head="").values_list("unread_head", flat=True)) == heads
    lm.work()
    assert set(branches(lm).values()) >= heads - {new}


def test_113_what_could_not_be_read_before_is_asked_for_after_all_else(lm: Deployment, new: str) -> None:
    lm.work(2)
    broken = many(lm, 20)
    look(lm, [])
    newer = lm.lake.commit("main", {"c": b"3"})
    lm.arrive()
    with unreadable(lm, *broken, new, error=Unreachable("timed out")):
        lm.work(1)
        assert lm.head() == newer


def test_113_branches_that_move_in_each_look_do_not_come_before_one_that_waits(lm: Deployment, new: str) -> None:
    many(lm, 8)
    look(lm, [])
    for _ in range(9):
        heads = {made_again(lm, f"b{n}", lm.lake.repository.branches[f"b{n}"]) for n in range(8)}
        silent = unreadable(lm, *heads, error=Unreachable("timed out"))
        with silent, one_by_one(), settings(branches_scanner_concurrency_limit=1):
            lm.run(Duty.objects.get(kind="sense").pk)
    assert SourceBranch.objects.get(name="main").head == new


def test_113_a_log_that_answers_shows_that_others_are_worth_asking_for(lm: Deployment, new: str) -> None:
    heads = sorted(many(lm, 20))
    broken = unreadable(lm, *heads[::2], error=Unreachable("timed out"))
    with broken, one_by_one(), settings(branches_scanner_concurrency_limit=1):
        lm.run(Duty.objects.get(kind="sense").pk)
    unread = SourceBranch.objects.exclude(unread_head="").values_list("unread_head", flat=True)
    assert set(unread) == set(heads[::2])


def test_113_a_source_that_is_away_is_asked_for_no_second_log(lm: Deployment, new: str) -> None:
    many(lm, 20)
    asked = list[str]()
    before = Repository.objects.get().looked_at
    away = mock.patch.object(lm.us, "get_repository", side_effect=Unreachable("timed out"))
    with away, settings(branches_scanner_concurrency_limit=1):
        look(lm, asked)
    assert len(asked) == 1
    assert not SourceBranch.objects.exclude(unread_head="").exists()
    assert Repository.objects.get().looked_at == before


def test_115_a_branch_that_is_made_again_at_what_can_not_be_read_is_there(lm: Deployment, new: str) -> None:
    dev = lm.lake.repository.branches.pop("dev")
    lm.work(1)
    SourceBranch.objects.filter(name="dev").update(missing_since=F("missing_since") - timedelta(seconds=61))
    lm.work(2)
    assert (lm.head(), lm.head("dev")) == (new, "")
    fix = lm.lake.repository.branches["dev"] = lm.lake.record_tree((dev,), lm.lake.trees[dev], "fix")
    with unreadable(lm, fix):
        lm.work(3)
        assert both(lambda found: (found.state, found.behind, found.pending)) == (State.RETRYING, 1, 1)
        assert lm.head("dev") == "", "nothing is known of where this one has pointed to"
    lm.work()
    assert (lm.head("dev"), both(lambda found: found.state)) == (fix, State.UP_TO_DATE)


def deleted_at_source(lm: Deployment, name: str) -> str:
    """Seen to be gone; gives where it pointed to."""
    head = lm.lake.repository.branches.pop(name)
    lm.work(1)
    SourceBranch.objects.filter(name=name).update(missing_since=F("missing_since") - timedelta(seconds=61))
    return head


def made_again(lm: Deployment, name: str, parent: str) -> str:
    """At a commit on top of this one."""
    fix = lm.lake.repository.branches[name] = lm.lake.record_tree((parent,), lm.lake.trees[parent], "fix")
    return fix


def moves_of(name: str) -> list[tuple[str, str, str]]:
    rows = Promotion.objects.filter(branch=name).order_by("pk")
    return list(rows.values_list("why", "from_commit", "to_commit"))


def read_dev(found: MirrorStatus) -> tuple[State, str]:
    dev = next(one for one in found.branches if one.name == "dev")
    return dev.state, dev.mirror_head


def unread_while_ours_stands(lm: Deployment) -> tuple[str, str]:
    """dev is made again at the source while the mirror is paused, and still has its own: that one's head, and the
    source's."""
    lm.work(2)
    Mirror.objects.update(paused=True)
    dev = deleted_at_source(lm, "dev")
    lm.work(1)
    return dev, made_again(lm, "dev", dev)


@pytest.mark.parametrize("selected", [True, False])
def test_115_what_somebody_moves_meanwhile_is_put_back(lm: Deployment, new: str, selected: bool) -> None:
    dev, fix = unread_while_ours_stands(lm)
    torn = lm.lake.commit("main", {"torn": b"1"})
    lm.arrive(lm.lake.address_of(torn, "torn"))
    with unreadable(lm, fix):
        lm.work(1)
        Mirror.objects.update(paused=False, selected={"include": ["*" if selected else "main"], "exclude": []})
        lm.work(1)
        branches(lm)["dev"] = torn
        lm.work(2)
        assert (lm.head("dev"), lm.torn()) == (dev, [])
        assert moves_of("dev")[-2:] == [("moved-by-somebody", dev, torn), ("put-back", torn, dev)]
        if selected:
            assert both(read_dev) == (State.RETRYING, dev)
    lm.arrive()
    lm.work()
    assert lm.head("dev") == (fix if selected else dev)


def test_115_what_somebody_deletes_meanwhile_is_put_back(lm: Deployment, new: str) -> None:
    dev, fix = unread_while_ours_stands(lm)
    Mirror.objects.update(paused=False)
    with unreadable(lm, fix):
        lm.work(1)
        del branches(lm)["dev"]
        lm.work(2)
        assert lm.head("dev") == dev
        assert moves_of("dev")[-2:] == [("gone-at-the-mirror", dev, ""), ("put-back", "", dev)]
    lm.work()
    assert (lm.head("dev"), both(lambda found: found.state)) == (fix, State.UP_TO_DATE)


def test_115_what_somebody_moved_and_can_not_be_put_back_is_shown(lm: Deployment, new: str) -> None:
    dev, fix = unread_while_ours_stands(lm)
    Mirror.objects.update(paused=False)
    with unreadable(lm, fix):
        lm.work(1)
        branches(lm)["dev"] = new
        with mock.patch.object(lm.eu, "hard_reset_branch", side_effect=Denied("403")):
            lm.work(3)
            assert both(read_dev) == (State.TAMPERED, new)
        lm.work(1)
        assert (lm.head("dev"), both(read_dev)) == (dev, (State.RETRYING, dev))
    lm.work()
    assert both(lambda found: found.state) == State.UP_TO_DATE


@pytest.mark.parametrize("read", [False, True])
def test_115_a_deletion_that_was_not_noted_is_noted_when_it_is_made_again(lm: Deployment, new: str, read: bool) -> None:
    lm.work(2)
    dev = deleted_at_source(lm, "dev")
    with mock.patch("mirroring.promote.move_history.record", side_effect=RuntimeError("killed")):
        lm.work(1)
    assert (lm.head("dev"), both(read_dev)[1]) == ("", dev)
    fix = made_again(lm, "dev", dev)
    with unreadable(lm, *([] if read else [fix])):
        lm.work(2)
        if not read:
            assert (lm.head("dev"), both(read_dev)) == ("", (State.RETRYING, ""))
            assert moves_of("dev")[-1] == ("deleted-at-source", dev, "")
    lm.work()
    assert (lm.head("dev"), both(lambda found: found.state)) == (fix, State.UP_TO_DATE)
    assert [why for why, _, _ in moves_of("dev")] == ["first-promotion", "deleted-at-source", "first-promotion"]


def test_115_the_same_before_the_mirror_has_deleted_it(lm: Deployment, new: str) -> None:
    lm.work(2)
    dev = lm.lake.repository.branches.pop("dev")
    Mirror.objects.update(paused=True)
    lm.work(1)
    SourceBranch.objects.filter(name="dev").update(missing_since=F("missing_since") - timedelta(seconds=61))
    lm.work(2)
    assert (SourceBranch.objects.get(name="dev").gone_at is None, lm.head("dev")) == (False, dev)
    fix = lm.lake.repository.branches["dev"] = lm.lake.record_tree((dev,), lm.lake.trees[dev], "fix")
    Mirror.objects.update(paused=False)
    with unreadable(lm, fix):
        lm.work(3)
        assert both(lambda found: (found.state, found.behind, found.pending)) == (State.RETRYING, 1, 1)
        assert lm.head("dev") == dev
    lm.work()
    assert (lm.head("dev"), both(lambda found: found.state)) == (fix, State.UP_TO_DATE)
