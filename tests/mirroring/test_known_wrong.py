"""What is known against a thing stays known until a look that could have found it says otherwise; and what was never
looked at is said to be nothing. The numbers are those of docs/promotion.md."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest

from core.errors import Denied, LakeMirrorError, RemoteFailure, Unreachable
from core.mirroring.object_check import Depth
from core.mirroring.states import State
from db import clock
from graveler.entries import AddressType
from jobs.lease import Lease
from jobs.models import Duty
from mirrors.models import Blocker, Coverage, MetarangeCoverage, Mirror, Waiver
from mirrors.queries.metaranges import remembered
from mirrors.queries.unreplicated import losses_of
from mirrors.services.waivers import waiver_give
from mirrors.status.mirror import mirror_status
from mirrors.status.readable_regions import places_of
from tests.mirroring.test_found_by_breaking import age, ask, branches, change, lose, mirrored, uri_of
from tests.mirroring.test_looks_again import arrive_but, weeks_pass
from tests.mirroring.test_one_key import real_job
from tests.mirroring.test_promise_findings import with_entry
from tests.mirrors.harness import NAMESPACE, Deployment, state_of

pytestmark = pytest.mark.django_db(transaction=True)

HARDLY_ANY = 1e-6
"""Such a share of the objects is read."""


@contextmanager
def few_by_name() -> Iterator[None]:
    """One problem of a range is kept by name."""
    modules = ["mirroring.validate.run_check", "mirroring.validate.doubt_new_coverage"]
    modules += ["mirrors.transitions.range_states", "mirrors.transitions.doubt"]
    patches = [mock.patch(f"{module}.KEPT_PER_HOLDER", 1) for module in modules]
    with patches[0], patches[1], patches[2], patches[3]:
        yield


def reasons() -> set[str]:
    return {row.reason for row in Blocker.objects.all()}


def rot(lm: Deployment, commit: str, path: str) -> None:
    """HEAD tells the size and ETag of before, the bytes are others."""
    uri, plain = uri_of(lm, commit, path), lm.eu_store.md5
    lm.eu_store.md5 = lambda asked: "0" * 32 if asked == uri else plain(asked)  # type: ignore[method-assign]


def known_to_be_rotten(lm: Deployment) -> str:
    """A commit with an object whose content was found to be wrong, at a mirror that from now on reads hardly any."""
    first = mirrored(lm, a=b"1", b=b"2")
    rot(lm, first, "a")
    ask(commit=first, depth=Depth.CONTENT)
    lm.work(2)
    change(content_sample=HARDLY_ANY)
    lm.work(2)
    assert reasons() == {"content-differs"}
    return first


def no_branch_is_made(lm: Deployment, commit: str) -> None:
    lm.lake.repository.branches["new"] = commit
    lm.work(3)
    assert "new" not in branches(lm)


# --- metaranges -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [Denied("403"), RemoteFailure("500")])
def test_157_a_metarange_that_can_not_be_read_is_not_proven_by_a_head(lm: Deployment, error: LakeMirrorError) -> None:
    first = mirrored(lm, a=b"1")
    mirrored(lm, a=None, b=b"2")
    file = f"{NAMESPACE}/_lakefs/{lm.lake.files_of(first)[0]}"
    lm.eu_store.unreadable[file] = error
    ask(commit=first)
    lm.work(2)
    assert reasons() == {"metarange-unreadable"}
    no_branch_is_made(lm, first)
    del lm.eu_store.unreadable[file]
    lm.work(3)
    assert branches(lm)["new"] == first
    assert not MetarangeCoverage.objects.exclude(state="complete").exists()


def test_157_where_it_is_the_heads_the_mirror_is_damaged(lm: Deployment) -> None:
    first = mirrored(lm, a=b"1")
    lm.eu_store.unreadable[f"{NAMESPACE}/_lakefs/{lm.lake.files_of(first)[0]}"] = Denied("403")
    ask(commit=first)
    lm.work(3)
    assert mirror_status(Mirror.objects.get()).state is State.DAMAGED


def test_157_it_is_found_in_its_turn(lm: Deployment) -> None:
    first = mirrored(lm, a=b"1")
    lm.eu_store.unreadable[f"{NAMESPACE}/_lakefs/{lm.lake.files_of(first)[0]}"] = Denied("403")
    lm.work(2)
    assert not Blocker.objects.exists()
    MetarangeCoverage.objects.update(verify_at=clock.now() - timedelta(seconds=1))
    lm.work(2)
    assert reasons() == {"metarange-unreadable"}
    assert mirror_status(Mirror.objects.get()).state is State.DAMAGED


def workers_begin_anew(lm: Deployment) -> None:
    """On another machine: they remember no file of metadata."""
    remembered().clear()
    shutil.rmtree(lm.local_cache.folder, ignore_errors=True)


@pytest.mark.parametrize("error", [Denied("403"), RemoteFailure("500")])
def test_167_a_proven_metarange_that_can_not_be_read_has_a_problem_of_its_own(
    lm: Deployment, error: LakeMirrorError
) -> None:
    first = mirrored(lm, a=b"1")
    file = f"{NAMESPACE}/_lakefs/{lm.lake.files_of(first)[0]}"
    lose(lm, first, "a")
    ask(commit=first)
    lm.work()
    workers_begin_anew(lm)
    lm.eu_store.unreadable[file] = error
    lm.arrive()
    lm.work(2)
    assert reasons() == {"metarange-unreadable"}
    assert mirror_status(Mirror.objects.get()).state is State.DAMAGED
    del lm.eu_store.unreadable[file]
    lm.work(3)
    assert mirror_status(Mirror.objects.get()).state is State.UP_TO_DATE


# --- time -------------------------------------------------------------------------------------------------------------


def test_168_a_round_keeps_its_lease_however_slowly_a_store_answers(
    lm: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a round of checks asks of a store, the lease is renewed meanwhile."""
    kept, unkept, keep_alive, check = [0], [0], Lease.keep_alive, lm.eu_store._check

    @contextmanager
    def counted(lease: Lease) -> Iterator[None]:
        kept[0] += 1
        with keep_alive(lease):
            yield
        kept[0] -= 1

    def asked() -> None:
        unkept[0] += not kept[0]
        check()

    monkeypatch.setattr(Lease, "keep_alive", counted)
    first = mirrored(lm, a=b"1")
    lose(lm, first, "a")
    ask(commit=first)
    monkeypatch.setattr(lm.eu_store, "_check", asked)
    for step in (lambda: None, lambda: workers_begin_anew(lm), lm.arrive, weeks_pass):
        step()
        for _ in range(2):
            Blocker.objects.update(look_at=clock.now())
            lm.run(Duty.objects.get(kind="validate").pk)
    assert lm.eu_store.heads and not unkept[0]


# --- content ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", ["content", "etag"])
@pytest.mark.parametrize("again", ["asked", "more is read"])
def test_158_wrong_content_is_over_when_it_was_read_again(lm: Deployment, depth: str, again: str) -> None:
    """A check that reads a share of all objects finds no other one wrong."""
    Mirror.objects.update(depth=depth)
    with real_job(lm):
        first = known_to_be_rotten(lm)
        if again == "asked":
            ask(commit=first)
        else:
            change(content_sample=2 * HARDLY_ANY)
        lm.work(2)
        assert reasons() == {"content-differs"}
        no_branch_is_made(lm, first)
        lm.eu_store.md5 = type(lm.eu_store).md5.__get__(lm.eu_store)  # type: ignore[method-assign]
        lm.work(3)
        assert branches(lm)["new"] == first


def test_158_although_it_was_archived_for_a_moment(lm: Deployment) -> None:
    Mirror.objects.update(depth="content")
    with real_job(lm):
        first = known_to_be_rotten(lm)
        plain = lm.eu_store.head

        def archived(uri: str) -> Any:
            info = plain(uri)
            return info._replace(storage_class="GLACIER") if info and uri == uri_of(lm, first, "a") else info

        with mock.patch.object(lm.eu_store, "head", archived):
            lm.work(1)
            assert reasons() == {"archived"}
        lm.work(2)
    assert reasons() == {"content-differs"}
    assert mirror_status(Mirror.objects.get()).state is State.DAMAGED


# --- depths -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("named", [True, False])
def test_159_what_a_deeper_check_found_wrong_counts_for_ranges_that_share_it(lm: Deployment, named: bool) -> None:
    Mirror.objects.update(history="head", depth="size")
    first = mirrored(lm, a=b"1", b=b"2")
    mirrored(lm, c=b"3")
    third = mirrored(lm, a=None)
    mirrored(lm, d=b"4")
    lm.eu_store.objects[uri_of(lm, first, "a")] = b"X"
    lm.eu_store.objects[uri_of(lm, first, "b")] = b"Y"
    if named:
        ask(commit=first, depth=Depth.ETAG)
        lm.work(1)
        no_branch_is_made(lm, third)
        return
    with few_by_name():
        ask(commit=first, depth=Depth.ETAG)
        lm.work(1)
        no_branch_is_made(lm, third)


def test_160_what_came_back_at_a_lesser_depth_is_not_proven_at_the_deeper_one(lm: Deployment) -> None:
    commit = mirrored(lm, a=b"1", b=b"2")
    change(depth="size")
    lm.work(2)
    lose(lm, commit, "a")
    ask(commit=commit, depth=Depth.PRESENCE)
    lm.work(1)
    assert Blocker.objects.count() == 1
    lm.eu_store.hidden.clear()
    lm.eu_store.objects[uri_of(lm, commit, "a")] = b"X"  # the right size, other bytes
    lm.work(2)
    assert not Blocker.objects.exists()
    change(depth="etag")
    no_branch_is_made(lm, commit)


def test_160_nor_where_another_range_found_it_lost(lm: Deployment) -> None:
    lm.lake.repository.branches["t"] = lm.lake.repository.branches["main"]
    a = mirrored(lm, a=b"1", b=b"2")
    lm.lake.repository.branches["t"] = a
    mirrored(lm, "t", z=b"9")
    change(depth="size")
    lm.work(2)
    lose(lm, a, "a")
    age(a, lm=lm)
    lm.work(2)
    assert Blocker.objects.count() == 2
    lm.eu_store.hidden.clear()
    lm.eu_store.objects[uri_of(lm, a, "a")] = b"X"
    lm.work(2)
    assert not Blocker.objects.exists()
    assert not Coverage.objects.filter(depth="etag", state="complete").exists()


# --- what is gone at both sides ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("refused", [0, 1, 40])
def test_161_keys_that_the_source_refuses_keep_no_other_from_being_found_gone(lm: Deployment, refused: int) -> None:
    lm.lake.repository.branches["t"] = lm.lake.repository.branches["main"]
    mirrored(lm, k=b"0")
    names = [f"x{number:02}" for number in range(40)]
    waits = lm.lake.commit(files={name: name.encode() for name in names})
    for name in names[:refused]:
        lm.us_store.refused[f"s3://src/lake/{lm.lake.address_of(waits, name)}"] = Denied("403")
    held = {uri_of(lm, waits, name) for name in names}
    arrive_but(lm, held)
    lm.work(2)
    lost = lm.lake.commit("t", {"y": b"1"})
    held |= {uri_of(lm, lost, "y")}
    good = lm.lake.commit("t", {"y": None, "z": b"2"})
    arrive_but(lm, held)
    lm.work(1)
    del lm.us_store.objects[f"s3://src/lake/{lm.lake.address_of(lost, 'y')}"]
    lm.work(8)
    assert branches(lm).get("t") == good


def test_162_a_waiver_holds_for_a_branch_that_is_selected_again(lm: Deployment) -> None:
    lm.lake.repository.branches["t"] = lm.lake.repository.branches["main"]
    mirrored(lm, k=b"0")
    lost = lm.lake.commit("t", {"y": b"1"})
    good = lm.lake.commit("t", {"y": None, "z": b"2"})
    arrive_but(lm, {uri_of(lm, lost, "y")})
    lm.work(3)
    with mock.patch("mirrors.services.waivers.rbac.require"):
        waiver_give(actor="system:tests", mirror=Mirror.objects.get(), commits=[lost], reason="lost")
    change(selected={"include": ["*"], "exclude": ["t"]})
    lm.work(3)
    waiver = Waiver.objects.get()
    assert (waiver.commits.count(), len(waiver.unneeded)) == (0, 1)
    change(selected={"include": ["*"], "exclude": []})
    lm.work(4)
    waiver = Waiver.objects.get()
    assert (state_of(lost).waiver, waiver.unneeded) == (waiver, None)
    assert branches(lm)["t"] == good


def test_163_the_source_is_not_said_to_have_what_is_not_looked_at_any_more(lm: Deployment) -> None:
    lm.lake.repository.branches["t"] = lm.lake.repository.branches["main"]
    mirrored(lm, k=b"0")
    lost = lm.lake.commit("t", {"y": b"1"})
    other = lm.lake.commit(files={"w": b"1"})
    arrive_but(lm, {uri_of(lm, lost, "y"), uri_of(lm, other, "w")})
    for commit, path in ((lost, "y"), (other, "w")):
        del lm.us_store.objects[f"s3://src/lake/{lm.lake.address_of(commit, path)}"]
    lm.work(4)

    def at_source() -> bool | None:
        places = places_of(list(Mirror.objects.select_related("source")), lost)[1]
        return next(place.readable.answer for place in places if place.role == "source")

    assert at_source() is False
    change(selected={"include": ["*"], "exclude": ["t"]})
    lm.work(3)
    assert at_source() is None


# --- what was never looked at -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dies", [False, True])
def test_164_a_first_arrival_is_no_damage_although_its_check_failed(lm: Deployment, dies: bool) -> None:
    """The file of a range has arrived, an object of it has not; Spark is away, or the worker dies before the check."""
    mirrored(lm, k=b"0")
    new = lm.lake.commit(files={"y": b"1"})
    file = f"_lakefs/{lm.lake.files_of(new)[1]}"
    lm.arrive(file, lm.lake.address_of(new, "y"))
    lm.work(1)
    assert Blocker.objects.get().kind == "range"
    lm.eu_store.hidden -= {f"{NAMESPACE}/{file}"}
    if dies:
        with mock.patch("mirroring.validate.commits.resolve_doubts", side_effect=RuntimeError("it died")):
            lm.work(1)
    else:
        lm.check_error = Unreachable("Spark is away")
        lm.work(1)
        lm.check_error = None
    lm.work(3)
    assert not Blocker.objects.filter(damage=True).exists()
    assert mirror_status(Mirror.objects.get()).state is not State.DAMAGED


def test_165_nobody_says_that_all_has_arrived_while_nobody_has_looked(lm: Deployment) -> None:
    first = mirrored(lm, x=b"1", y=b"2")
    lose(lm, first, "x")
    age(first, lm=lm)
    lm.work(1)
    lm.lake.repository.branches["new"] = first
    lm.work(2)
    weeks_pass()
    lose(lm, first, "y")
    lm.eu_store.hidden -= {uri_of(lm, first, "x")}
    second = lm.lake.record_tree((first,), dict(lm.lake.trees[first]), "the same tree")
    lm.lake.repository.branches["main"] = second
    lm.arrive(lm.lake.address_of(first, "y"))
    lm.check_error = Unreachable("Spark is away")
    lm.work(2)
    assert losses_of(Mirror.objects.get(), "", 10).together.missing.objects is None


def test_165_nor_of_what_both_sides_have_lost(lm: Deployment) -> None:
    mirrored(lm, k=b"0")
    lost = lm.lake.commit(files={"y": b"1"})
    arrive_but(lm, {uri_of(lm, lost, "y")})
    del lm.us_store.objects[f"s3://src/lake/{lm.lake.address_of(lost, 'y')}"]
    lm.work(4)
    assert state_of(lost).data == "gone"
    missing = losses_of(Mirror.objects.get(), "", 10).together.missing
    assert (missing.objects, missing.gone) == (0, 1)


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_166_imported_objects_are_looked_for_once_they_are_allowed(lm: Deployment, scheme: str) -> None:
    with real_job(lm):
        uri = f"{scheme}://elsewhere/x"
        lm.eu_store.put(uri, b"odd")
        new = with_entry(lm, mirrored(lm, k=b"0"), uri, AddressType.FULL)
        lm.lake.repository.branches["main"] = new
        lm.arrive()
        lm.work(3)
        assert reasons() == {"imported"}
        change(imported="allow")
        lm.work(6)
        assert lm.head() == new
