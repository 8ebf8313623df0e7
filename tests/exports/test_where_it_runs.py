"""An export is work of its source's region: of that deployment's queue, whoever asks for it, wherever it goes."""

from __future__ import annotations

import pytest

from core.errors import Invalid
from db.clock import after_now
from exports.models import Export
from exports.services.exports import Wish, export_delete, export_pause, export_run, export_set
from jobs import duties
from jobs.management.commands import controller
from jobs.models import Duty
from rbac.models import User
from tests.deployment.telling import REGIONS, as_deployment_of
from tests.mirrors.harness import Deployment

pytestmark = pytest.mark.django_db
HOME, QUEUE = "us-east-1", "us-east-1-spark"
ELSEWHERE = [region for region in REGIONS if region != HOME]


@pytest.fixture
def export(lm: Deployment, owner: User) -> Export:
    """Of a repository in us-east-1, mirrored to eu-west-1 too, to a bucket that is the affair of no region."""
    lm.lake.commit(files={"a": b"1"})
    lm.add_mirror()
    Duty.objects.all().delete()
    with as_deployment_of(HOME):
        made, _ = export_set(
            actor=owner, region=HOME, repository="lake", branch="main", wish=Wish("s3://company-bucket/x")
        )
    return made


def queues() -> set[str]:
    return set(Duty.objects.filter(kind="export").values_list("queue", flat=True))


def test_it_is_in_the_queue_of_the_sources_spark_workers(export: Export) -> None:
    assert queues() == {QUEUE}
    assert [queue for _, queue in Duty.objects.wake(kind="export", subject=-export.pk)] == [QUEUE]


@pytest.mark.parametrize("region", ELSEWHERE)
def test_whoever_asks_for_it_in_another_region_sends_to_that_queue(
    lm: Deployment, export: Export, owner: User, region: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[int, str]] = []
    monkeypatch.setattr(duties, "send", sent.extend)
    monkeypatch.setattr(duties, "wake", lambda *one: duties.send(Duty.objects.wake(kind=one[0], subject=one[1])))
    with as_deployment_of(region):
        assert duties.repository_changed(HOME, "lake"), "a webhook that was sent here"
        export_run(actor=owner, export=export)
        for paused in (True, False):
            export_pause(actor=owner, export=export, paused=paused)
        export_delete(actor=owner, export=export)
    assert {queue for _, queue in sent} == queues() == {QUEUE}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("region", ELSEWHERE)
def test_no_other_region_takes_it_over_nor_has_it_made(export: Export, owner: User, region: str) -> None:
    Duty.objects.update(due_at=after_now(-duties.OVERDUE_SECONDS - 1), woken_at=None)
    with as_deployment_of(region):
        controller.look_round()
        controller.tick()
        with pytest.raises(Invalid, match="does not serve the region 'us-east-1'"):
            export_set(actor=owner, region=HOME, repository="lake", branch="main", name="b", wish=Wish("s3://b/x"))
    assert queues() == {QUEUE}
    assert not Duty.objects.filter(kind="export").exclude(woken_at=None).exists()


def test_it_goes_on_in_the_deployment_that_serves_the_region_now(export: Export) -> None:
    Duty.objects.update(due_at=after_now(-duties.OVERDUE_SECONDS - 1))
    with as_deployment_of("eu-west-1", serve_regions=["eu-west-1", HOME]):
        assert duties.take_over() == 1
    assert queues() == {"eu-west-1-spark"}
