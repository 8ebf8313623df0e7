"""What is known to be wrong, and a plain look would not find again, is not forgotten: by nothing but a read. The
numbers are those of docs/promotion.md."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import pytest

from core.errors import Denied
from core.mirroring.object_check import Depth
from core.mirroring.states import State
from jobs.models import Duty
from mirrors.models import Blocker, Coverage, Mirror
from mirrors.queries.metarange_cache import MetarangeCache
from mirrors.queries.metaranges import ranges_named
from mirrors.queries.missing import blockers_of
from mirrors.queries.missing_counts import waiting_at
from mirrors.status.mirror import mirror_status
from tests.mirroring.test_found_by_breaking import ask, change, mirrored, uri_of
from tests.mirroring.test_known_wrong import (
    HARDLY_ANY,
    few_by_name,
    known_to_be_rotten,
    no_branch_is_made,
    reasons,
    rot,
)
from tests.mirroring.test_one_key import real_job
from tests.mirrors.harness import NAMESPACE, Deployment

pytestmark = pytest.mark.django_db(transaction=True)


def heal(lm: Deployment) -> None:
    lm.eu_store.md5 = type(lm.eu_store).md5.__get__(lm.eu_store)  # type: ignore[method-assign]


def rotten_branch(lm: Deployment, depth: Depth) -> str:
    """The head of a second branch, in a range that was never complete, with an object `a` that a check of this depth
    found to be wrong: on demand, or, at the mirror's own depth, before it was to read hardly any."""
    lm.lake.repository.branches["t"] = lm.lake.repository.branches["main"]
    mirrored(lm, m=b"main")
    bad = lm.lake.commit("t", {"a": b"12", "y": b"34"})
    own = depth == Mirror.objects.get().depth
    lm.arrive(*([] if own else [lm.lake.address_of(bad, "y")]))
    if depth is Depth.CONTENT:
        rot(lm, bad, "a")
    else:
        lm.eu_store.objects[uri_of(lm, bad, "a")] = b"XY"
    lm.work(2)
    if not own:
        ask(commit=bad, depth=depth)
        lm.work(2)
    else:
        change(content_sample=HARDLY_ANY)
        lm.work(1)
    assert Blocker.objects.filter(path="a").exists() and not Blocker.objects.filter(damage=True).exists()
    return bad


def leave_out_t(lm: Deployment) -> None:
    change(selected={"include": ["main"], "exclude": []})
    lm.work(3)


def brought_to_main(lm: Deployment, how: str, commit: str, path: str = "a") -> str:
    repository = lm.lake.repository
    if how == "merged":
        new = lm.lake.merge("t")
    else:
        head = repository.branches["main"]
        tree = lm.lake.trees[head] | {path.encode(): lm.lake.trees[commit][path.encode()]}
        new = repository.branches["main"] = lm.lake.record_tree((head,), tree, "cherry-pick")
    lm.arrive()
    lm.work(5)
    return new


@pytest.mark.parametrize("how", ["merged", "picked"])
@pytest.mark.parametrize(
    ("own", "found_by"), [("etag", Depth.CONTENT), ("content", Depth.CONTENT), ("size", Depth.ETAG)]
)
def test_183_what_is_known_to_be_wrong_stays_so_while_nobody_needs_it(
    lm: Deployment, own: str, found_by: Depth, how: str
) -> None:
    Mirror.objects.update(depth=own)
    with real_job(lm):
        bad = rotten_branch(lm, found_by)
        leave_out_t(lm)
        mirror = Mirror.objects.get()
        assert (mirror_status(mirror).state, waiting_at([mirror])) == (State.UP_TO_DATE, {})
        assert not blockers_of(mirror).exists() and set(Blocker.objects.values_list("path", flat=True)) == {"a"}
        new = brought_to_main(lm, how, bad)
        assert lm.head() != new
        assert mirror_status(Mirror.objects.get()).state is not State.UP_TO_DATE
        assert blockers_of(mirror).filter(path="a").exists()
        heal(lm)
        lm.eu_store.objects[uri_of(lm, bad, "a")] = b"12"
        lm.work(3)
        assert lm.head() == new and not Blocker.objects.needed().exists()


def test_183_nobody_looks_for_it_meanwhile(lm: Deployment) -> None:
    with real_job(lm):
        rotten_branch(lm, Depth.CONTENT)
        leave_out_t(lm)
        before = Blocker.objects.get().attempts
        lm.work(3)
        assert Blocker.objects.get().attempts == before


def test_183_selected_again_it_is_read(lm: Deployment) -> None:
    with real_job(lm):
        bad = rotten_branch(lm, Depth.CONTENT)
        leave_out_t(lm)
        change(selected={"include": ["*"], "exclude": []})
        lm.arrive()
        lm.work(4)
        assert lm.head("t") != bad and reasons() == {"content-differs"}
        heal(lm)
        lm.work(3)
        assert lm.head("t") == bad and not Blocker.objects.exists()


def made_anew(lm: Deployment) -> None:
    there = lm.eu.repositories["lake-eu"]
    there.info = replace(there.info, creation_date=there.info.creation_date + 9)
    there.branches.clear()
    there.commits.clear()
    lm.work(4)


def test_184_content_that_is_known_to_be_wrong_stays_so_in_a_repository_that_is_made_anew(lm: Deployment) -> None:
    Mirror.objects.update(depth="content")
    with real_job(lm):
        first = known_to_be_rotten(lm)
        made_anew(lm)
        assert lm.head() != first and reasons() == {"content-differs"}
        heal(lm)
        lm.work(3)
        assert lm.head() == first


def test_184_and_so_does_a_metarange_that_can_not_be_read(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    second = mirrored(lm, a=None, b=b"2")
    file = f"{NAMESPACE}/_lakefs/{lm.lake.files_of(second)[0]}"
    lm.eu_store.unreadable[file] = Denied("403: the key was disabled")
    ask(commit=second)
    lm.work(2)
    assert reasons() == {"metarange-unreadable"}
    made_anew(lm)
    assert lm.head() != second
    del lm.eu_store.unreadable[file]
    lm.work(3)
    assert lm.head() == second


def test_184_at_another_store_nothing_is_known(lm: Deployment) -> None:
    Mirror.objects.update(depth="content")
    with real_job(lm):
        first = known_to_be_rotten(lm)
        heal(lm)
        Blocker.objects.update(look_at="2100-01-01T00:00:00Z")
        with mock.patch("deployment.wiring.region_settings.store_identity", lambda region: "http://elsewhere"):
            lm.work(1)
            assert not Blocker.objects.exists() and not Coverage.objects.exclude(deeper="").exists()
            no_branch = lm.lake.repository.branches["new"] = first
            lm.work(3)
            assert lm.head("new") == no_branch


def two_rotten(lm: Deployment, branch: str = "main") -> tuple[str, str, str]:
    """A commit with two rotten objects, the path of the one that is kept by name, and that of the other one."""
    lm.lake.repository.branches.setdefault(branch, lm.lake.repository.branches["main"])
    first = lm.lake.commit(branch, {"a": b"1", "b": b"2"})
    bad = {uri_of(lm, first, "a"), uri_of(lm, first, "b")}
    plain = lm.eu_store.md5
    lm.arrive()
    lm.work(2)
    lm.eu_store.md5 = lambda asked: "0" * 32 if asked in bad else plain(asked)  # type: ignore[method-assign]
    ask(commit=first, depth=Depth.CONTENT)
    lm.work(2)
    named = Blocker.objects.get().path
    change(content_sample=HARDLY_ANY)
    lm.work(1)
    bad.discard(uri_of(lm, first, named))
    return first, named, {"a": "b", "b": "a"}[named]


@pytest.mark.parametrize("depth", ["content", "etag"])
def test_185_more_is_known_to_be_wrong_than_is_kept_by_name(lm: Deployment, depth: str) -> None:
    """The one that has a name is mended: all of the range is read, not a share."""
    Mirror.objects.update(depth=depth)
    with real_job(lm), few_by_name():
        first, _, _ = two_rotten(lm)
        lm.work(4)
        no_branch_is_made(lm, first)
        assert mirror_status(Mirror.objects.get()).state is State.DAMAGED
        heal(lm)
        lm.work(4)
        assert lm.head("new") == first


@pytest.mark.parametrize("unselect", [True, False])
@pytest.mark.parametrize("depth", ["content", "etag"])
def test_186_a_new_range_names_what_has_no_name_there(lm: Deployment, depth: str, unselect: bool) -> None:
    Mirror.objects.update(depth=depth, history="head")
    with real_job(lm), few_by_name():
        mirrored(lm, m=b"main")
        first, _, other = two_rotten(lm, "t")
        if unselect:
            leave_out_t(lm)
        Blocker.objects.update(look_at="2100-01-01T00:00:00Z")  # and nobody looks at what has a name
        new = brought_to_main(lm, "picked", first, other)
        assert lm.head() != new
        heal(lm)
        Blocker.objects.update(look_at="2000-01-01T00:00:00Z")
        lm.work(4)
        assert lm.head() == new


def test_191_a_metarange_that_is_damaged_on_a_workers_disk_is_asked_for_at_the_store(lm: Deployment) -> None:
    """By the worker that moves branches, which is another one than the one that checks."""
    mirrored(lm, a=b"1")
    new = lm.lake.commit("main", {"b": b"2"})
    lm.arrive()
    duties = {kind: Duty.objects.get(kind=kind).pk for kind in ("manage", "sense", "copy", "validate", "promote")}
    for kind in ("manage", "sense", "copy", "validate"):
        lm.run(duties[kind])
    file = lm.local_cache._path(lm.lake.files_of(new)[0])
    whole = file.read_bytes()
    file.write_bytes(whole[:-5] + b"xxxxx")
    memory = MetarangeCache(metaranges=100, ranges=1000, seconds=1e6)
    with mock.patch("mirrors.queries.metaranges.remembered", lambda: memory):
        assert ranges_named(Mirror.objects.get(), lm.lake.files_of(new)[0])
        lm.run(duties["promote"])
    assert lm.head() == new and file.read_bytes() == whole


@pytest.mark.parametrize("unselect", [True, False])
@pytest.mark.parametrize("depth", ["etag", "presence"])
def test_203_what_reading_found_is_read_although_the_mirror_reads_nothing_any_more(
    lm: Deployment, depth: str, unselect: bool
) -> None:
    Mirror.objects.update(depth="content")
    with real_job(lm):
        bad = rotten_branch(lm, Depth.CONTENT)
        if unselect:
            leave_out_t(lm)
        change(depth=depth)
        lm.arrive()
        lm.work(3)
        new = brought_to_main(lm, "merged", bad)
        assert lm.head() != new and reasons() == {"content-differs"}
        heal(lm)
        lm.work(3)
        assert lm.head() == new and not Blocker.objects.exists()


def test_203_what_could_only_not_be_compared_passes(lm: Deployment) -> None:
    Mirror.objects.update(depth="content")
    with real_job(lm):
        first = known_to_be_rotten(lm)
        Blocker.objects.update(reason="content-unproven")
        change(depth="etag")
        lm.work(2)
        assert not Blocker.objects.exists()
        assert mirror_status(Mirror.objects.get()).state is State.UP_TO_DATE and lm.head() == first
