"""Histories that no single look reads to their end: what was read stays until it is whole, or known to be wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from core.errors import NotFound, RemoteFailure, Unreachable
from mirrors.models import Mirror, Repository
from tests.mirroring.test_found_by_breaking import mirrored
from tests.mirroring.test_recreated_source import failing
from tests.mirroring.test_tags import source_tags, tags
from tests.mirrors.harness import Deployment, age_roots

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def few_pages(lm: Deployment, pages: int, of: Callable[[str], bool] = lambda _: True) -> Iterator[Callable[[], None]]:
    """Logs come one commit a page; so many pages are given until what this gives is called, then 500."""
    plain, left = lm.us.log_commits, [pages]

    def log(repository: str, commit: str, **page: Any) -> Any:
        if of(commit):
            left[0] -= 1
            if left[0] < 0:
                raise RemoteFailure("500")
        return plain(repository, commit, after=page.get("after", ""), amount=1)

    def again() -> None:
        left[0] = pages

    with mock.patch.object(lm.us, "log_commits", log):
        yield again


def line(lm: Deployment, *parents: str, length: int) -> list[str]:
    """So many commits, one upon the other."""
    made: list[str] = []
    for number in range(length):
        made.append(lm.lake._record(parents, "", f"{number} of {length}", {}))
        parents = (made[-1],)
    return made


@pytest.mark.parametrize("own", [False, True])
def test_131_a_branch_with_a_history_of_its_own_is_read_over_several_looks(lm: Deployment, own: bool) -> None:
    main = mirrored(lm, a=b"1")
    orphan = line(lm, *(() if own else (main,)), length=3)
    lm.lake.repository.branches["orphan"] = orphan[-1]
    with few_pages(lm, 2) as again:
        for _ in range(14):
            lm.work(1)
            age_roots(seconds=20)
            again()
        assert lm.head("orphan") == orphan[-1]


@pytest.mark.parametrize("pages", [2, 50])
def test_131_so_is_a_default_branch_while_others_move(lm: Deployment, pages: int) -> None:
    lm.lake.repository.branches["dev"] = mirrored(lm, a=b"1")
    lm.work(2)
    tip = lm.lake.repository.branches["main"] = line(lm, length=4)[-1]
    with few_pages(lm, pages) as again:
        for number in range(14):
            dev = lm.lake.commit("dev", {"d": b"%d" % number})
            lm.arrive()
            lm.work(1)
            age_roots(seconds=20)
            again()
        assert (lm.head(), lm.head("dev")) == (tip, dev)


@pytest.mark.parametrize("tagged", [False, True])
def test_131_a_first_copy_that_breaks_off_while_main_moves_is_no_strangers(lm: Deployment, tagged: bool) -> None:
    Mirror.objects.update(tags=tagged)
    first = [lm.lake.commit(files={"a": b"%d" % number}) for number in range(6)]
    if tagged:
        source_tags(lm)["v1"] = first[2]
    lm.arrive()
    with few_pages(lm, 3) as again:
        for number in range(20):
            lm.lake.commit(files={"m": b"%d" % number})
            lm.arrive()
            lm.work(1)
            assert "shares no commit" not in Repository.objects.get().look_error
            again()
    lm.work(2)
    assert lm.head() == lm.lake.repository.branches["main"]


@pytest.mark.parametrize("moves", [False, True])
def test_132_what_was_read_of_a_tag_stays_while_branches_move(lm: Deployment, moves: bool) -> None:
    Mirror.objects.update(tags=True)
    those = line(lm, mirrored(lm, a=b"1"), length=7)
    source_tags(lm)["v1"] = those[-1]
    with few_pages(lm, 2, lambda commit: commit in those) as again:
        for number in range(10):
            if moves:
                lm.lake.commit(files={"m": b"%d" % number})
                lm.arrive()
            lm.work(1)
            again()
        assert tags(lm) == {"v1": those[-1]}


@pytest.mark.parametrize("tagged", [False, True])
@pytest.mark.parametrize("beside", [False, True])
def test_133_wrong_records_are_read_again_whatever_else_fails(lm: Deployment, tagged: bool, beside: bool) -> None:
    Mirror.objects.update(tags=tagged)
    main = mirrored(lm, a=b"1")
    below, tip = line(lm, main, length=2)
    bad = lm.lake._record((main,), "", "bad", {})
    (source_tags(lm) if tagged else lm.lake.repository.branches).update(
        {"wrong": tip} | ({"bad": bad} if beside else {})
    )
    commits = lm.lake.repository.commits
    whole = commits[below]
    with failing(lm, lambda commit: commit == bad):
        commits[below] = replace(whole, parents=(tip,))
        lm.work(1)
        commits[below] = whole
        lm.work(6)
        assert tags(lm) == {"wrong": tip} if tagged else lm.head("wrong") == tip


def test_133_each_branch_is_told_its_own_reason(lm: Deployment) -> None:
    main = mirrored(lm, a=b"1")
    below, tip = line(lm, main, length=2)
    other = lm.lake._record((main,), "", "other", {})
    lm.lake.repository.branches.update(a=tip, b=other)
    plain, errors = (
        lm.us.log_commits,
        {below: NotFound("the parent is not there"), other: Unreachable("no answer in 60 s")},
    )

    def log(repository: str, commit: str, **page: Any) -> Any:
        if commit in errors:
            raise errors[commit]
        return plain(repository, commit, after=page.get("after", ""), amount=1)

    with mock.patch.object(lm.us, "log_commits", log):
        for _ in range(4):
            lm.work(1)
            assert "the history of a, b can't be read: the parent is not there" in Repository.objects.get().look_error


@pytest.mark.parametrize("tagged", [False, True])
def test_142_a_tag_and_a_branch_do_not_keep_each_others_wrong_records(lm: Deployment, tagged: bool) -> None:
    Mirror.objects.update(tags=True)
    below, tip = line(lm, mirrored(lm, a=b"1"), length=2)
    lm.lake.repository.branches["wrong"] = tip
    if tagged:
        source_tags(lm)["v1"] = tip
    commits = lm.lake.repository.commits
    whole, commits[below] = commits[below], replace(commits[below], parents=(tip,))
    lm.work(1)
    commits[below] = whole
    for _ in range(6):
        lm.work(1)
        age_roots(seconds=20)
    assert lm.head("wrong") == tip


@pytest.mark.parametrize("circle", [False, True])
def test_142_nor_does_a_head_whose_other_history_fails_for_ever(lm: Deployment, circle: bool) -> None:
    main = mirrored(lm, a=b"1")
    below, tip = line(lm, main, length=2)
    (bad,) = line(lm, main, length=1)
    lm.lake.repository.branches |= {"wrong": tip, "both": lm.lake._record((tip, bad), "", "both", {})}
    commits = lm.lake.repository.commits
    whole = commits[below]
    with failing(lm, lambda commit: commit == bad):
        commits[below] = replace(whole, parents=(tip if circle else "f" * 64,))
        lm.work(1)
        commits[below] = whole
        lm.work(8)
        assert lm.head("wrong") == tip


@pytest.mark.parametrize("beside", [False, True])
def test_143_a_tag_is_read_over_several_looks_beside_one_with_a_history_of_its_own(
    lm: Deployment, beside: bool
) -> None:
    Mirror.objects.update(tags=True)
    those = line(lm, mirrored(lm, a=b"1"), length=7)
    source_tags(lm)["v1"] = those[-1]
    if beside:
        source_tags(lm)["odd"] = lm.lake._record((), "", "a root of its own", {})
    with few_pages(lm, 3, lambda commit: commit in those) as again:
        for _ in range(16):
            lm.work(1)
            age_roots(seconds=20)
            again()
    assert tags(lm) == {"v1": those[-1]}


@pytest.mark.parametrize("tagged", [False, True])
@pytest.mark.parametrize("first", ["the line", "the root"])
def test_143_so_is_a_merge_of_a_root_of_its_own(lm: Deployment, tagged: bool, first: str) -> None:
    Mirror.objects.update(tags=True)
    main = mirrored(lm, a=b"1")
    root = lm.lake._record((), "", "a root of its own", {})
    those = line(lm, main, length=7)
    tip = lm.lake._record((root, those[-1]) if first == "the root" else (those[-1], root), "", "merge", {})
    (source_tags(lm) if tagged else lm.lake.repository.branches)["v1"] = tip
    with few_pages(lm, 3, lambda commit: commit in (*those, tip, root)) as again:
        for _ in range(16):
            lm.work(1)
            age_roots(seconds=20)
            again()
    assert (tags(lm).get("v1") if tagged else lm.head("v1")) == tip
