"""Several deployments on one database: each works for its own regions, and goes on without the others."""

from __future__ import annotations

from typing import Any

import pytest
from django_q.models import OrmQ

from db.clock import after_now
from jobs import deployments, duties
from jobs.management.commands import controller
from jobs.models import Duty
from mirrors.models import Mirror
from mirrors.transitions import duties as mirror_duties
from rbac.models import User
from tests.api import MIRRORS, Api
from tests.deployment.telling import REGIONS, as_deployment_of
from tests.mirrors.harness import Deployment

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def tell() -> Any:
    """Be the deployment of a region, for a while."""
    return as_deployment_of


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


def test_a_mirror_is_made_at_the_source_and_worked_for_at_the_destination(
    lm: Deployment, tell: Any, owner: User
) -> None:
    body = {"name": "lake-two", "region": "eu-west-1", "storage_namespace": "s3://dst/two"}
    with tell("us-east-1"):
        status, made = Api(owner).call("POST", MIRRORS, body)
        assert (status, made["region"]) == (201, "eu-west-1")
        own = Duty.objects.filter(
            subject=Mirror.objects.get(name="lake-two").pk, kind__in=["manage", "copy", "promote"]
        )
        assert set(own.values_list("queue", flat=True)) == {"eu-west-1"}
        controller.tick()
        assert own.exclude(woken_at=None).get().kind == "manage", "creation has sent for it, and our own clock for none"
        assert "lake-two" not in lm.eu.repositories
    with tell("eu-west-1"):
        controller.tick()
        assert own.exclude(woken_at=None).count() == 3
        lm.work()
    assert "lake-two" in lm.eu.repositories


def test_each_says_that_it_is_there_and_the_preflight_tells_who_would_work(
    lm: Deployment, tell: Any, owner: User
) -> None:
    body = {"name": "lake-ap", "region": "ap-south-1", "storage_namespace": "s3://dst/ap"}

    def check() -> tuple[str, str]:
        with tell("us-east-1"):
            answer = Api(owner).call("POST", f"{MIRRORS}/preflight", body)[1]
        found = next(one for one in answer["checks"] if one["id"] == "destination-worker")
        return found["state"], found["message"]

    assert check() == (
        "warning",
        "No deployment that serves ap-south-1 has ever reported: the mirror would wait for one",
    )
    with tell("eu-west-1", serve_regions=["eu-west-1", "ap-south-1"]):
        deployments.announce()
    assert check() == ("ok", "The deployment eu-west-1 serves ap-south-1")
    deployments.Deployment.objects.update(seen_at=after_now(-120))
    assert check() == (
        "warning",
        "The deployment eu-west-1, which serves ap-south-1, has not reported for 2 min",
    )


def test_deployments_that_differ_where_they_must_not_are_told(
    lm: Deployment, tell: Any, owner: User, caplog: pytest.LogCaptureFixture
) -> None:
    with tell("eu-west-1", organization_id="another", auth={"encrypt": {"secret_key": "another"}}):
        deployments.announce()
    with tell("us-east-1"):
        found = deployments.disagreements()
        assert [one.partition(". ")[0].partition(":")[0] for one in found] == [
            "The deployments of us-east-1 and eu-west-1 differ in auth.encrypt.secret_key",
            "The deployments of us-east-1 and eu-west-1 differ in organization_id",
        ]
        for _ in range(2):
            controller.look_round()
        assert [one.message for one in caplog.records].count(found[0]) == 1, "said once"
        assert set(found) <= set(Api(owner).call("GET", "/service/replication/v1/jobs")[1]["troubles"])
        deployments.Deployment.objects.filter(region="eu-west-1").update(seen_at=after_now(-2 * 86400))
        assert deployments.disagreements() == []
