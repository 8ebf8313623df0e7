"""A repository is made anew under the source's name, and a server's cache still gives the old one's creation date.

Of its history nothing is taken before a second look, more than 10 s later, has asked once more. The numbers are those
of docs/promotion.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest

from core.errors import RemoteFailure
from db import clock
from jobs.models import Duty
from tests.fakes import FakeStore, Lake
from tests.mirrors.engine.test_found_by_breaking import mirrored
from tests.mirrors.harness import Deployment

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def recreated(lm: Deployment) -> Iterator[Lake]:
    """Another repository under the name, with a root on main, while all who ask are told of the old one."""
    old = lm.us.repositories.pop("lake").info
    made = Lake(lm.us, FakeStore())
    made.repository.branches["main"] = made._record((), "", "Repository created again", {})
    born = replace(made.repository.info, creation_date=old.creation_date + 100)
    lm.us.repositories["lake"].info = born
    with mock.patch.object(lm.us, "get_repository", return_value=replace(born, creation_date=old.creation_date)):
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
        with mock.patch("mirrors.engine.sense.branches.clock.now", lambda: next(times, None) or now()):
            lm.run(Duty.objects.get(kind="sense").pk)
        lm.work(1)
        assert lm.head() == head
