"""Deployments of two neighbouring versions on one database: what only the newer one knows is left alone."""

from __future__ import annotations

import pytest
from django.test import Client
from django_q.models import OrmQ

from db.clock import after_now
from deployment import config
from jobs.management.commands import controller
from jobs.models import Duty
from mirrors.models import Blocker, Coverage, Mirror, MirrorCommit
from rbac.models import User
from tests.mirrors.harness import Deployment, state_of

pytestmark = pytest.mark.django_db(transaction=True)


def add_duty(kind: str) -> Duty:
    """A duty that is due."""
    queue = config.current().worker_queue
    return Duty.objects.create(kind=kind, subject=Mirror.objects.get().pk, queue=queue, due_at=after_now(-1))


def _worked_on() -> list[tuple[int, int, str]]:
    """What shows that somebody took up a duty of the mirror."""
    return list(Duty.objects.exclude(kind="sense").order_by("pk").values_list("attempt", "failures", "outcome"))


def test_a_duty_of_an_unknown_kind_is_neither_claimed_nor_sent(lm: Deployment) -> None:
    duty = add_duty("reindex")
    Duty.objects.exclude(pk=duty.pk).update(due_at=after_now(60))
    assert lm.run(duty.pk) == "the duty 'reindex' belongs to a newer version"
    controller.tick()
    assert not OrmQ.objects.exists()
    found = Duty.objects.get(pk=duty.pk)
    assert (found.attempt, found.holder, found.outcome, found.woken_at) == (0, "", "", None)


@pytest.mark.parametrize(("field", "value"), [("state", "failing-over"), ("depth", "double"), ("imported", "copy")])
def test_a_mirror_that_only_a_newer_version_understands_is_left_alone(lm: Deployment, field: str, value: str) -> None:
    lm.arrive()
    lm.work()
    was = lm.head()
    Mirror.objects.update(**{field: value})
    before = _worked_on()
    commit = lm.lake.commit()
    lm.arrive()
    lm.work()
    assert lm.head() == was
    assert (
        list(Duty.objects.exclude(kind="sense").order_by("pk").values_list("attempt", "failures", "outcome")) == before
    )
    assert state_of(commit).record == "pending", "the newer version finds the commit's row"
    Mirror.objects.update(state="active", depth="etag", imported="block")
    lm.work()
    assert lm.head() == commit


def test_a_range_in_an_unknown_state_makes_its_commit_wait_and_no_other(lm: Deployment) -> None:
    lm.arrive()
    lm.work()
    commit = lm.lake.commit()
    lm.arrive()
    _, range_id = lm.lake.files_of(commit)
    Coverage.objects.create(
        mirror=Mirror.objects.get(),
        range_id=range_id,
        state="quarantined",
        depth="etag",
        looked=b"",
        checked_at=after_now(0),
    )
    lm.lake.repository.branches["other"] = lm.lake.repository.commits[commit].parents[0]
    lm.work()
    assert Coverage.objects.get(range_id=range_id).state == "quarantined"
    assert state_of(commit).data == MirrorCommit.Data.WAITING
    assert lm.head("other") == lm.lake.repository.branches["other"]
    assert not Duty.objects.filter(failures__gt=0).exists()


def test_a_blocker_of_an_unknown_kind_is_not_looked_for(lm: Deployment) -> None:
    lm.arrive()
    lm.work()
    blocker = Blocker.objects.create(
        mirror=Mirror.objects.get(),
        kind="tag",
        holder_id="v1",
        key="v1",
        address="v1",
        reason="tag-missing",
        first_seen=after_now(0),
        look_at=after_now(-60),
    )
    commit = lm.lake.commit()
    lm.arrive()
    lm.work(look=False)
    blocker.refresh_from_db()
    assert (blocker.attempts, lm.head()) == (1, commit)


def test_pages_and_the_api_show_what_they_do_not_know(lm: Deployment, owner: User, client: Client) -> None:
    lm.arrive()
    lm.work()
    commit = lm.lake.commit()
    lm.work()
    add_duty("reindex")
    Blocker.objects.update(kind="tag", reason="tag-missing")
    MirrorCommit.objects.filter(commit__sha=commit).update(data="quarantined")
    Mirror.objects.update(state="failing-over", depth="double")
    client.force_login(owner)
    for url in ("/", "/mirrors/lake-eu"):
        assert client.get(url, follow=True).status_code == 200
    answer = client.get("/service/replication/v1/repositories/lake/mirrors/lake-eu")
    assert answer.json()["id"] == "lake-eu"
