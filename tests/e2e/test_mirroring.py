"""A commit's way from the source to readers of the mirror, and what happens when something is lost on it."""

from __future__ import annotations

import pytest

from mirrors.models import Coverage, MirrorCommit, Run
from tests.e2e.conftest import World

pytestmark = [pytest.mark.spark]


def test_a_commit_becomes_readable_at_the_mirror(caught_up: World) -> None:
    assert caught_up.read() == {"a.csv": b"one", "dir/b.csv": b"two"}
    second = caught_up.commit({"a.csv": b"three", "c.csv": b"four"})
    caught_up.work_until(lambda: caught_up.head() == second)
    assert caught_up.read() == {"a.csv": b"three", "c.csv": b"four", "dir/b.csv": b"two"}
    run = Run.objects.first()
    assert run is not None
    assert (run.job, run.outcome, run.problems) == ("check", "done", 0)


def test_a_held_back_object_keeps_the_mirror_at_the_last_whole_commit(caught_up: World) -> None:
    before = caught_up.head()
    caught_up.sandbox.hold(kind="data", count=1)
    after = caught_up.commit({"c.csv": b"late"})
    caught_up.sandbox.wait_replicated()
    for _ in range(4):
        caught_up.work()
    assert caught_up.head() == before
    assert caught_up.read() == {"a.csv": b"one", "dir/b.csv": b"two"}
    blocker = caught_up.blocker()
    assert (blocker.kind, blocker.path, blocker.reason, blocker.gone_at_source) == ("object", "c.csv", "missing", False)
    caught_up.sandbox.release()
    caught_up.work_until(lambda: caught_up.head() == after)
    assert caught_up.read()["c.csv"] == b"late"


@pytest.mark.parametrize("kind", ["range", "metarange"])
def test_held_back_metadata_keeps_the_mirror_at_the_last_whole_commit(caught_up: World, kind: str) -> None:
    before = caught_up.head()
    caught_up.sandbox.hold(kind=kind, count=1)
    after = caught_up.commit({"c.csv": b"late"})
    caught_up.sandbox.wait_replicated()
    for _ in range(4):
        caught_up.work()
    assert caught_up.head() == before
    assert caught_up.read() == {"a.csv": b"one", "dir/b.csv": b"two"}
    assert (caught_up.blocker().kind, caught_up.blocker().reason) == (kind, f"{kind}-missing")
    caught_up.sandbox.release()
    caught_up.work_until(lambda: caught_up.head() == after)


@pytest.mark.parametrize(("kind", "reason"), [("data", "etag-differs"), ("range", "range-damaged")])
def test_what_was_damaged_on_the_way_is_never_promoted(caught_up: World, kind: str, reason: str) -> None:
    before = caught_up.head()
    caught_up.sandbox.corrupt(kind=kind, count=1)
    after = caught_up.commit({"c.csv": b"fragile"})
    caught_up.sandbox.wait_replicated()
    for _ in range(4):
        caught_up.work()
    assert caught_up.head() == before
    assert caught_up.blocker().reason == reason
    caught_up.sandbox.release()
    caught_up.work_until(lambda: caught_up.head() == after)


def test_branches_merges_and_rewinds_are_followed(caught_up: World) -> None:
    root = caught_up.head()
    source, repo = caught_up.source, caught_up.repo
    source.create_branch(repo, "feature", "main")
    feature = caught_up.commit({"f.csv": b"new"}, "feature")
    caught_up.work_until(lambda: caught_up.head("feature") == feature)
    source.merge(repo, "feature", "main", "merge", {})
    merged = source.head(repo, "main")
    caught_up.work_until(lambda: caught_up.head() == merged)
    assert "f.csv" in caught_up.read()
    source.hard_reset(repo, "main", root)
    caught_up.work_until(lambda: caught_up.head() == root)
    assert "f.csv" not in caught_up.read()


def test_a_lakefs_that_answers_500_or_a_store_that_is_away_only_delays(caught_up: World) -> None:
    before = caught_up.head()
    eu = caught_up.sandbox.destination.name
    after = caught_up.commit({"c.csv": b"x"})
    for service in ("s3", "lakefs"):
        caught_up.sandbox.server_faults(eu, service, "error")
        caught_up.work()
        caught_up.sandbox.server_faults(eu, service, "ok")
        if service == "s3":
            assert caught_up.head() == before
    caught_up.work_until(lambda: caught_up.head() == after)
    assert not caught_up.mirror.blockers.exists()


def test_only_what_changed_is_looked_up(caught_up: World) -> None:
    many = caught_up.commit({f"many/{n:03}.csv": b"%d" % n for n in range(40)})
    caught_up.work_until(lambda: caught_up.head() == many)
    one = caught_up.commit({"many/007.csv": b"changed"})
    caught_up.work_until(lambda: caught_up.head() == one)
    latest = Coverage.objects.order_by("-checked_at", "-pk").first()
    assert latest is not None
    assert latest.looked_up <= 1
    assert latest.bases
    assert MirrorCommit.objects.get(commit__sha=one).validated_at is not None
