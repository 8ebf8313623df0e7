"""The database is lost while both regions go on; the mirror is made again from its destination."""

from __future__ import annotations

import pytest
from django.core.management import call_command

from jobs.models import Duty
from mirrors.models import Mirror, MirrorBranch, Repository
from tests.e2e.conftest import World

pytestmark = [pytest.mark.spark]


def lose_database() -> None:
    Duty.objects.all().delete()
    Mirror.objects.all().delete()
    Repository.objects.all().delete()


def test_a_mirror_is_made_again_from_its_destination_and_goes_on(world: World) -> None:
    source, repo = world.source, world.repo
    first = world.commit({"a.csv": b"one", "dir/b.csv": b"two"})
    source.create_branch(repo, "feature", "main")
    feature = world.commit({"f.csv": b"new"}, "feature")
    world.work_until(lambda: (world.head(), world.head("feature")) == (first, feature))
    world.work_until(lambda: MirrorBranch.objects.filter(certified__in=[first, feature]).count() == 2)
    lose_database()
    world.sandbox.hold(kind="data", count=1)
    late = world.commit({"c.csv": b"late"})
    world.sandbox.wait_replicated()

    call_command("rebuild", "--from-destination", "--mirror", world.mirror_name)
    rows = dict(MirrorBranch.objects.values_list("name", "head"))
    assert rows == {"main": first, "feature": feature}
    for _ in range(4):
        world.work()
        assert (world.head(), world.head("feature")) == (first, feature)
    assert world.read() == {"a.csv": b"one", "dir/b.csv": b"two"}
    assert not MirrorBranch.objects.filter(stray=True).exists()

    world.sandbox.release()
    world.work_until(lambda: world.head() == late)
    assert world.read()["c.csv"] == b"late"
