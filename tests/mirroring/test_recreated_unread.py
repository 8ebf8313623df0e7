"""A repository is made anew under the source's name while nothing of the old one is in the books: after a rebuild, or
because no log was answered yet. Each root waits for itself. The number is that of docs/promotion.md."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from core.types import Page
from jobs.models import Duty
from mirrors.models import Repository
from tests.mirroring.test_found_by_breaking import mirrored
from tests.mirroring.test_recreated_source import failing, recreated
from tests.mirrors.harness import Deployment, untold
from tests.mirrors.services.test_rebuild import lose_database, rebuild

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(params=["rebuilt", "unread"])
def head(request: Any, lm: Deployment) -> str:
    """What main shows at the mirror, "" for no branch; `dev` of the source is at the same commit as its main."""
    old = lm.lake.commit(files={"a": b"1"})
    lm.lake.repository.branches["dev"] = old
    lm.arrive()
    if request.param == "rebuilt":
        lm.work()
        assert lm.head() == lm.head("dev") == old
        lose_database()
        rebuild()
    else:
        with failing(lm, lambda _: True):
            lm.work(1)
    return lm.head()


def test_141_an_old_branch_in_the_repository_that_was_made_anew_speaks_for_no_other(lm: Deployment, head: str) -> None:
    """Somebody pushed it there."""
    old, records = lm.lake.repository.branches["dev"], dict(lm.lake.repository.commits)
    with recreated(lm) as made:
        made.repository.commits.update(records)
        made.repository.branches["dev"] = old
        lm.work(1)
        assert lm.head() == head


def test_141_a_list_of_branches_over_the_moment_of_recreation(lm: Deployment, head: str) -> None:
    """Its first page is the old repository's, its second one that of the other."""
    old = lm.lake.repository.branches["dev"]
    with recreated(lm):
        plain = lm.us.list_branches

        def pages(repository: str, *, after: str = "", amount: int = 1000, hidden: bool = True) -> Any:
            page = plain(repository, after="", amount=amount, hidden=hidden)
            return page if after else Page((replace(page.results[0], name="dev", commit_id=old),), "dev")

        with mock.patch.object(lm.us, "list_branches", pages):
            lm.work(1)
        assert lm.head() == head


def test_141_what_a_look_left_of_the_other_is_not_taken_by_one_at_the_old(lm: Deployment, head: str) -> None:
    """A look at a server that knows the other ends after its logs were read; the next one is at another server."""
    sense, old = Duty.objects.get(kind="sense").pk, lm.us.repositories["lake"]
    with recreated(lm) as made:
        new, root = lm.us.repositories["lake"], made.repository.branches["main"]
        with untold(lm.us):
            lm.run(sense)
        lm.us.repositories["lake"] = old
        lm.run(sense)
        lm.us.repositories["lake"] = new
        assert not Repository.objects.get().commits.filter(sha=root).exists()
        lm.work(1)
        assert lm.head() in (head, old.branches["main"])


def test_141_a_source_that_is_still_the_same_one_waits_for_nothing(lm: Deployment, head: str) -> None:
    new = mirrored(lm, a=b"2")
    lm.work(1)
    assert lm.head() == new
