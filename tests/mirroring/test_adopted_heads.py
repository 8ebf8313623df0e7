"""What a destination showed before it was adopted proves nothing. The numbers are those of docs/promotion.md."""

from __future__ import annotations

from copy import deepcopy

import pytest

from jobs.models import Duty
from mirrors.models import Repository
from rbac.models import User
from tests.mirroring.test_recreated_source import failing, recreated
from tests.mirrors.harness import NAMESPACE, Deployment
from tests.mirrors.services.test_adopt import create, lm

__all__ = ["lm"]
pytestmark = pytest.mark.django_db(transaction=True)


def test_147_an_adopted_head_whose_records_another_tool_left_out(lm: Deployment, owner: User) -> None:
    """They were filled, and are lost again by a restore, where the head stands as before."""
    made = [lm.lake.commit(files={"a": b"%d" % number}) for number in range(3)]
    lm.arrive()
    there = lm.eu.add_repository("lake-eu", NAMESPACE, read_only=True)
    there.commits[made[-1]] = lm.lake.repository.commits[made[-1]]
    there.branches["main"] = made[-1]
    saved = deepcopy(there)
    create(owner)
    lm.work(3)
    assert not lm.torn()
    lm.eu.repositories["lake-eu"] = saved
    lm.lake.repository.branches["dev"] = made[-1]
    new = lm.lake.commit(files={"a": b"9"})
    lm.arrive()
    lm.work(4)
    assert (saved.branches, lm.torn()) == ({"main": new, "dev": made[-1]}, [])


def test_149_a_source_that_was_made_anew_before_the_first_look_at_it(lm: Deployment, owner: User) -> None:
    """Its root is read, then not, then read again, all while a cache knows the old one."""
    head = lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    there = lm.eu.add_repository("lake-eu", NAMESPACE, read_only=True)
    there.commits.update(lm.lake.repository.commits)
    there.branches["main"] = head
    create(owner)
    sense = Duty.objects.get(kind="sense").pk
    with recreated(lm):
        lm.run(sense)
        with failing(lm, lambda _: True):
            lm.run(sense)
        lm.work(2)
        assert (lm.head(), Repository.objects.get().commits.count()) == (head, 0)
