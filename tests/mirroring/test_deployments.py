"""Several deployments on one database: each works for its own regions, and goes on without the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django_q.models import OrmQ

from db.clock import after_now
from deployment import config
from jobs import duties
from jobs.management.commands import controller
from jobs.models import Duty
from mirrors.models import Mirror
from mirrors.transitions import duties as mirror_duties
from tests.deployment.test_config import changed
from tests.mirrors.harness import Deployment

pytestmark = pytest.mark.django_db(transaction=True)

REGIONS = ("us-east-1", "eu-west-1", "ap-south-1")


@pytest.fixture
def tell(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Be the deployment of a region, for a while."""

    @contextmanager
    def be(region: str, **more: Any) -> Iterator[None]:
        others = {name: f"http://{name}" for name in REGIONS if name != region}
        told = config.parse(changed("region", region) | {"dst_endpoints": others, "serve_regions": [region]} | more)
        with monkeypatch.context() as patch:
            patch.setattr(config, "current", lambda: told)
            yield

    return be


@pytest.fixture
def mirrors(lm: Deployment, tell: Any) -> dict[str, Mirror]:
    """One source with a mirror in each of two regions, each region with a deployment of its own."""
    Duty.objects.all().delete()
    eu = Mirror.objects.get()
    ap = Mirror.objects.create(
        name="lake-ap", source=eu.source, region="ap-south-1", storage_namespace="s3://dst/lake-ap"
    )
    for mirror in (eu, ap):
        with tell(mirror.region):
            mirror_duties.ensure_mirror_duties(mirror)
    return {mirror.region: mirror for mirror in (eu, ap)}


def queues() -> dict[tuple[str, int], str]:
    return {(duty.kind, duty.subject): duty.queue for duty in Duty.objects.all()}


def test_each_has_the_duties_of_its_mirrors_and_one_that_of_their_source(mirrors: dict[str, Mirror]) -> None:
    found = queues()
    for region, mirror in mirrors.items():
        assert {found[kind, mirror.pk] for kind in ("manage", "copy", "promote")} == {region}
        assert found["validate", mirror.pk] == f"{region}-spark"
    assert found["sense", mirrors["eu-west-1"].source_id] == "eu-west-1"


def test_a_controller_sends_for_its_own_queues_only(mirrors: dict[str, Mirror], tell: Any) -> None:
    sent = []
    for region in REGIONS:
        with tell(region):
            OrmQ.objects.all().delete()
            Duty.objects.update(woken_at=None)
            controller.tick()
        sent.append(Duty.objects.exclude(woken_at=None).count())
    assert sent == [0, 5, 4]


def test_a_source_is_looked_at_by_another_when_its_deployment_is_gone(mirrors: dict[str, Mirror], tell: Any) -> None:
    Duty.objects.update(due_at=after_now(-duties.OVERDUE_SECONDS - 1))
    with tell("us-east-1"):
        assert duties.take_over() == 0
    with tell("ap-south-1"):
        Duty.objects.filter(queue__startswith="ap-south-1").update(due_at=after_now(1))
        controller.look_round()
    found = queues()
    assert found["sense", mirrors["ap-south-1"].source_id] == "ap-south-1"
    assert found["promote", mirrors["eu-west-1"].pk] == "eu-west-1"
    assert found["validate", mirrors["eu-west-1"].pk] == "eu-west-1-spark"


@pytest.mark.parametrize("alive", [{"due_at": after_now(-1)}, {"until": after_now(30)}])
def test_what_somebody_takes_up_stays_with_them(mirrors: dict[str, Mirror], tell: Any, alive: dict[str, Any]) -> None:
    Duty.objects.update(**{"due_at": after_now(-duties.OVERDUE_SECONDS - 1)} | alive)
    with tell("ap-south-1"):
        assert duties.take_over() == 0


def test_mirrors_of_a_region_that_is_served_elsewhere_now_go_on_there(mirrors: dict[str, Mirror], tell: Any) -> None:
    Duty.objects.update(due_at=after_now(-duties.OVERDUE_SECONDS - 1))
    with tell("us-east-1", serve_regions=["us-east-1", "eu-west-1"]):
        assert duties.take_over() == 5
    found = queues()
    assert found["copy", mirrors["eu-west-1"].pk] == "us-east-1"
    assert found["validate", mirrors["eu-west-1"].pk] == "us-east-1-spark"
    assert found["copy", mirrors["ap-south-1"].pk] == "ap-south-1"
