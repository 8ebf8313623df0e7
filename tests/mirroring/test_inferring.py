"""`first_sync: inferred`: what a first copy may show early, and which mirror."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest
from django.test import Client

from core.mirroring.states import State
from jobs.models import Duty
from mirrors.models import Candidate, Mirror, MirrorBranch, Promotion
from mirrors.services.settings import mirror_update
from mirrors.status.branch_commits import branch_commits
from mirrors.status.mirror import BranchStatus, branch_json, mirror_status
from mirrors.transitions import duties
from rbac.models import User
from tests.fakes import replicate
from tests.mirroring.test_sensor import dies_after, grow, record, run
from tests.mirrors.harness import Deployment, state_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def setting(lm: Deployment) -> None:
    Mirror.objects.update(first_sync="inferred")


def line(lm: Deployment, number: int) -> list[str]:
    """Commits in a line, each with a file of its own; all of it is at the mirror but what `hold` names."""
    return [lm.lake.commit(files={f"f{n}": b"%d" % n}) for n in range(number)]


def hold(lm: Deployment, *commits: str) -> None:
    """Keep back what the commits added."""
    held = []
    for commit in commits:
        parent = lm.lake.repository.commits[commit].parents[0]
        added = lm.lake.trees[commit].keys() - lm.lake.trees[parent].keys()
        held += [lm.lake.trees[commit][path].address for path in added]
    lm.arrive(*held)


def inferred() -> list[tuple[int, str]]:
    rows = Candidate.objects.filter(position__lt=0).order_by("-position")
    return list(rows.values_list("position", "commit__sha"))


def read(mirror: Mirror | None = None) -> BranchStatus:
    return mirror_status(mirror or Mirror.objects.get()).branches[0]


def moves() -> list[tuple[str, str]]:
    return list(Promotion.objects.order_by("pk").values_list("why", "to_commit"))


# --- what is shown ----------------------------------------------------------------------------------------------------


def test_it_is_called_inferred_on_page_and_in_the_api(lm: Deployment, owner: User, client: Client) -> None:
    commits = line(lm, 6)
    hold(lm, commits[3])
    lm.work()
    branch = read()
    assert (branch.inferred, branch.pending, branch_json(branch)["inferred"]) == (True, 3, True)
    assert f"until then it shows {commits[2][:8]}, inferred from the history" in branch.sentence.lower()
    assert branch.state is not State.LATE
    told = branch_commits(Mirror.objects.get(), "main", mirror_status(Mirror.objects.get()).as_of)
    assert [(c.commit_id, c.inferred) for c in told.pending] == [
        (commits[5], False),
        (commits[4], True),
        (commits[3], True),
    ]
    assert [c.commit_id for c in told.mirrored][:2] == [commits[2], commits[1]]
    client.force_login(owner)
    page = client.get("/mirrors/lake-eu/?branch=main").content.decode()
    assert '<span class="dim">inferred</span>' in page
    assert page.count(" · inferred") == 6, "all but the head that was seen"
    assert not MirrorBranch.objects.get().certified


def test_the_other_side_of_a_merge_is_not_inferred(lm: Deployment) -> None:
    commits = line(lm, 2)
    lm.lake.repository.branches["dev"] = commits[0]
    side = lm.lake.commit("dev", {"d": b"1"})
    merged = lm.lake.merge("dev")
    del lm.lake.repository.branches["dev"]
    head = lm.lake.commit()
    root = lm.lake.repository.commits[commits[0]].parents[0]
    hold(lm, head)
    lm.work()
    assert lm.head() == merged
    assert inferred() == [(-2, merged), (-3, commits[1]), (-4, commits[0]), (-5, root)]
    assert state_of(side).data == "complete"


# --- which mirror -----------------------------------------------------------------------------------------------------


def another_mirror(lm: Deployment) -> Mirror:
    """One of the same source, to which everything comes too but what is held back from this one."""
    ours = Mirror.objects.get(name="lake-eu")
    made = Mirror.objects.create(
        name="lake-two", source=ours.source, region="eu-west-1", storage_namespace="s3://dst/two"
    )
    duties.ensure_mirror_duties(made)
    replicate(lm.us_store, lm.eu_store, to="s3://dst/two")
    lm.eu_store.hidden |= {uri.replace("s3://dst/lake", "s3://dst/two") for uri in lm.eu_store.hidden}
    return made


def test_no_other_mirror_of_the_source_shows_what_is_inferred(lm: Deployment) -> None:
    commits = line(lm, 4)
    hold(lm, commits[3])
    other = another_mirror(lm)
    lm.work()
    assert lm.head() == commits[2]
    assert lm.eu.repositories["lake-two"].branches == {}
    assert other.commits.get(commit__sha=commits[2]).data == "complete"
    assert (read(other).inferred, read(other).pending) == (False, 1)
    told = branch_commits(other, "main", mirror_status(other).as_of)
    assert [c.commit_id for c in (*told.pending, *told.mirrored)] == [commits[3]]


def test_the_setting_may_be_given_later_and_taken_back(lm: Deployment, owner: User) -> None:
    Mirror.objects.update(first_sync="exact")
    commits = line(lm, 5)
    hold(lm, commits[2], commits[4])
    lm.work()
    assert (lm.head(), inferred()) == ("", [])
    change(owner, "inferred")
    lm.work()
    assert lm.head() == commits[1]
    change(owner, "exact")
    hold(lm, commits[4])
    lm.work()
    assert (lm.head(), len(inferred())) == (commits[1], 5)
    lm.eu.repositories["lake-eu"].branches["main"] = commits[0]
    lm.work()
    assert lm.head() == commits[1], "put back"
    lm.arrive()
    lm.work(3)
    assert (lm.head(), inferred()) == (commits[4], [])


def change(owner: User, value: str) -> None:
    mirror_update(actor=owner, mirror=Mirror.objects.get(), changes={"first_sync": value})


def test_a_branch_that_stands_somewhere_by_other_means_does_not_go_back(lm: Deployment) -> None:
    """As an adopted one does, or one that was made again from its destination."""
    commits = line(lm, 4)
    hold(lm, commits[1])
    run(lm, "manage", "sense", "copy")
    lm.eu.repositories["lake-eu"].branches["main"] = commits[2]
    MirrorBranch.objects.create(mirror=Mirror.objects.get(), name="main", head=commits[2])
    lm.work()
    assert (lm.head(), [why for why, _ in moves()]) == (commits[2], [])


def test_a_branch_that_somebody_else_made_first_is_not_moved_to_what_is_inferred(lm: Deployment) -> None:
    commits = line(lm, 4)
    hold(lm, commits[3])
    run(lm, "manage", "sense", "copy")
    lm.eu.repositories["lake-eu"].branches["main"] = commits[3]
    lm.work()
    assert lm.head() == commits[3]
    assert read().reason_code == "stray_branch"


def test_a_crash_after_the_move_is_nobody_elses_doing(lm: Deployment) -> None:
    commits = line(lm, 4)
    hold(lm, commits[1], commits[3])
    with mock.patch("mirroring.promote.move_history.record", side_effect=RuntimeError("killed")):
        lm.work(1)
    assert lm.head() == commits[0]
    hold(lm, commits[3])
    lm.work()
    assert lm.head() == commits[2]
    assert {why for why, _ in moves()} == {"inferred"}


def test_what_an_inferred_head_shows_stays_while_it_is_judged_anew(lm: Deployment, owner: User) -> None:
    commits = line(lm, 4)
    hold(lm, commits[2])
    lm.work()
    assert lm.head() == commits[1]
    mirror_update(actor=owner, mirror=Mirror.objects.get(), changes={"depth": "content"})
    assert [state_of(sha).data for sha in commits] == ["unknown"] * 4
    lm.run(Duty.objects.get(kind="promote").pk)
    assert (lm.head(), MirrorBranch.objects.get().proven) == (commits[1], False)
    lm.work()
    assert [state_of(sha).data for sha in commits] == ["complete", "complete", "waiting", "waiting"]
    assert (lm.head(), MirrorBranch.objects.get().proven) == (commits[1], True)


# --- how it is stored -------------------------------------------------------------------------------------------------


@contextmanager
def windows(size: int) -> Iterator[None]:
    with mock.patch("mirroring.sense.inferred.WINDOW", size):
        yield


@pytest.mark.parametrize("version", [0, 1])
def test_the_chain_is_stored_window_by_window_and_goes_on_after_a_crash(lm: Deployment, version: int) -> None:
    first = grow(lm, 12)
    side = record(lm, (first[3],), "side")
    parents = (first[-1], side) if version else (side, first[-1])
    merged = record(lm, parents, "merge", version=version)
    lm.lake.repository.branches["main"] = merged
    last = grow(lm, 12, version=version)
    plain: Any = Candidate.objects.bulk_create
    with (
        windows(4),
        mock.patch.object(Candidate.objects, "bulk_create", dies_after(4, plain)),
        pytest.raises(KeyboardInterrupt),
    ):
        run(lm, "sense")
    assert 0 < len(inferred()) < 20
    Duty.objects.update(until=None)
    with windows(4):
        run(lm, "sense")
    root = lm.lake.repository.commits[first[0]].parents[0]
    wanted = [*last[-2::-1], merged, *first[::-1], root]
    assert inferred() == list(zip(range(-2, -2 - len(wanted), -1), wanted, strict=True))
    assert list(Candidate.objects.filter(position__gte=0).values_list("commit__sha", flat=True)) == [last[-1]]


def test_a_look_that_finds_the_chain_complete_writes_nothing(lm: Deployment) -> None:
    grow(lm, 5)
    run(lm, "sense")
    with mock.patch.object(Candidate.objects, "bulk_create", side_effect=AssertionError("again")):
        assert "0 moved" in run(lm, "sense")
