"""Having a check stopped: nothing more is written of it, and no commit is judged by it."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
from django.core.management import CommandError, call_command

from audit.models import AuditEvent
from core.errors import Conflict
from db import clock
from jobs.job_ids import JobType
from jobs.models import Duty
from mirrors.models import Coverage, Mirror, Run, Validation, ValidationRange
from mirrors.services.stop_check import job_stop
from mirrors.services.validations import validation_ask
from rbac.models import User
from tests.api import MIRRORS, Api
from tests.mirrors.harness import Deployment, state_of

pytestmark = pytest.mark.django_db(transaction=True)
BASE = "/service/replication/v1"


def who() -> User:
    return User.objects.get(username="olga")


@pytest.fixture
def mirror(lm: Deployment, head: str, owner: User) -> Mirror:
    return Mirror.objects.select_related("source").get()


def validate_once(lm: Deployment) -> str:
    return lm.run(Duty.objects.get(kind="validate").pk)


def stop_run(job: str = "") -> None:
    run = Run.objects.filter(ended_at=None, **({"job": job} if job else {})).get()
    job_stop(actor=who(), kind=JobType.RUN, row=run)


def during(lm: Deployment, what: Callable[[], object], rows: int = 0) -> Any:
    """A check in the course of which something is done, after so many rows were handed over."""
    plain = lm.run_check

    def check(mirror: Mirror, work: Any, on_rows: Any) -> None:
        given: list[Any] = []
        plain(mirror, work, given.extend)
        on_rows(given[:rows])
        what()
        on_rows(given[rows:])

    return mock.patch("deployment.wiring.check_jobs.run_check", check)


# A run


def test_a_stopped_run_writes_nothing_more_and_judges_nothing(lm: Deployment, mirror: Mirror) -> None:
    commit = lm.lake.commit(files={f"more/{n}": b"x" for n in range(4)})
    lm.arrive()
    lm.run(Duty.objects.get(kind="sense").pk)
    lm.run(Duty.objects.get(kind="copy").pk)
    before = Coverage.objects.count()
    with during(lm, stop_run):
        assert validate_once(lm) == "somebody stopped it"
    run = Run.objects.latest("pk")
    assert (run.outcome, run.error, run.ranges_done) == ("stopped", "somebody stopped it", 0)
    assert Coverage.objects.count() == before
    assert state_of(commit).data == "unknown" and state_of(commit).validated_at is None
    duty = Duty.objects.get(kind="validate")
    assert duty.failures == 0 and duty.succeeded_at < duty.started_at
    lm.work()
    assert lm.head() == commit and not lm.torn()


def test_what_was_written_down_before_the_stop_stays(lm: Deployment, mirror: Mirror) -> None:
    Coverage.objects.all().delete()
    mirror.commits.update(data="unknown")
    with during(lm, stop_run, rows=1):
        validate_once(lm)
    run = Run.objects.latest("pk")
    assert (run.outcome, run.ranges_done, Coverage.objects.count()) == ("stopped", 1, 1)
    assert not mirror.commits.filter(data="complete").exists()


def test_a_stop_in_the_midst_of_writing_takes_back_what_was_written(lm: Deployment, mirror: Mirror) -> None:
    """Between the look at the flag and the end of the transaction."""
    Coverage.objects.all().delete()
    mirror.commits.update(data="unknown")
    with (
        mock.patch("mirroring.validate.run_check.CheckWriter.is_stopped", return_value=False),
        during(lm, stop_run),
    ):
        assert validate_once(lm) == "somebody stopped it"
    assert Coverage.objects.count() == 0


def test_a_run_without_rows_is_asked_whether_it_goes_on(lm: Deployment, mirror: Mirror) -> None:
    Coverage.objects.all().delete()
    mirror.commits.update(data="unknown")
    asked: list[int] = []

    def check(of: Mirror, work: Any, on_rows: Any) -> None:
        stop_run()
        on_rows([])
        asked.append(1)

    with mock.patch("deployment.wiring.check_jobs.run_check", check):
        validate_once(lm)
    assert asked == [] and Run.objects.latest("pk").outcome == "stopped"


def test_what_has_ended_or_lost_its_worker_is_not_stopped(api: Api, lm: Deployment, mirror: Mirror) -> None:
    ended = Run.objects.latest("pk")
    status, told = api.call("POST", f"{BASE}/jobs/run-{ended.pk}/stop")
    assert status == 409 and "has ended already" in told["message"]
    lost = Run.objects.create(mirror=mirror, job="check", started_at=clock.now())
    status, told = api.call("POST", f"{BASE}/jobs/run-{lost.pk}/stop")
    assert status == 409 and "is lost" in told["message"]
    status, told = api.call("POST", f"{BASE}/jobs/duty-{Duty.objects.all()[0].pk}/stop")
    assert status == 409 and "Pause the mirror" in told["message"]
    assert not AuditEvent.objects.filter(after__has_key="stop").exists()


# A check on demand


def test_a_stopped_validation_ends_at_once_and_is_written_down(api: Api, lm: Deployment, mirror: Mirror) -> None:
    _, asked = api.call("POST", f"{MIRRORS}/lake-eu/validate", {"all": True})
    status, told = api.call("POST", f"{asked['job']}/stop")
    assert (status, told["job"]) == (202, asked["job"])
    assert api.call("GET", asked["job"])[1]["state"] == "stopped"
    assert AuditEvent.objects.latest("pk").after == {"stop": f"validation-{asked['id']}", "mirror": "lake-eu"}
    lm.checked.clear()
    lm.work()
    assert lm.checked == []
    assert api.call("POST", f"{asked['job']}/stop")[0] == 409
    assert api.call("POST", f"{asked['job']}/retry")[1]["job"] == f"{BASE}/jobs/validation-{asked['id'] + 1}"


def stop_validation() -> None:
    job_stop(actor=who(), kind=JobType.VALIDATION, row=Validation.objects.get())


@pytest.mark.parametrize("stop", [stop_validation, lambda: stop_run("validate")])
def test_a_validation_is_stopped_while_its_run_is_at_work(
    lm: Deployment, mirror: Mirror, stop: Callable[[], None]
) -> None:
    asked = validation_ask(actor=who(), mirror=mirror)
    before = list(Coverage.objects.values_list("pk", "checked_at"))
    with during(lm, stop):
        validate_once(lm)
    asked.refresh_from_db()
    assert (asked.state, asked.stopped_by, asked.ranges_done, asked.error) == ("stopped", "olga", 0, "")
    run = Run.objects.latest("pk")
    assert (run.job, run.outcome, run.validation) == ("validate", "stopped", asked)
    assert list(Coverage.objects.values_list("pk", "checked_at")) == before
    assert not ValidationRange.objects.exists()
    assert Duty.objects.get(kind="validate").failures == 0


@pytest.mark.parametrize(
    "place", ["mirroring.validate.on_demand.read_afresh", "mirroring.validate.on_demand.within_budget"]
)
def test_a_validation_is_stopped_wherever_it_is(lm: Deployment, mirror: Mirror, place: str) -> None:
    asked = validation_ask(actor=who(), mirror=mirror)
    module, _, name = place.rpartition(".")
    plain = getattr(__import__(module, fromlist=[name]), name)

    def stopped(*given: Any) -> Any:
        if Validation.objects.filter(ended_at=None).exists():
            stop_validation()
        return plain(*given)

    with mock.patch(place, stopped):
        validate_once(lm)
    asked.refresh_from_db()
    assert (asked.state, asked.ranges_done) == ("stopped", 0)
    assert not ValidationRange.objects.exists()


def test_a_check_that_fails_as_it_is_stopped_stays_stopped(lm: Deployment, mirror: Mirror) -> None:
    from core.errors import Unreachable

    asked = validation_ask(actor=who(), mirror=mirror)

    def away(*given: Any) -> None:
        stop_validation()
        raise Unreachable("Spark is away")

    with mock.patch("deployment.wiring.check_jobs.run_check", away):
        validate_once(lm)
    asked.refresh_from_db()
    assert (asked.state, asked.error) == ("stopped", "")


def test_the_command_that_waits_tells_of_the_stop(lm: Deployment, mirror: Mirror) -> None:
    told = io.StringIO()
    with mock.patch("time.sleep", lambda _: stop_validation()), pytest.raises(CommandError, match="olga stopped it"):
        call_command("validate", "lake-eu", "--wait", "--actor", "olga", stdout=told)
    assert "stopped after" in told.getvalue()


# Who


def test_who_may_only_look_may_not_stop(teammate: User, outsider: User, lm: Deployment, mirror: Mirror) -> None:
    asked = validation_ask(actor=who(), mirror=mirror)
    for user in (teammate, outsider):
        assert Api(user).call("POST", f"{BASE}/jobs/validation-{asked.pk}/stop")[0] == 403
    asked.refresh_from_db()
    assert asked.state == "queued"


def test_two_who_stop_the_same_are_told_apart(mirror: Mirror) -> None:
    asked = validation_ask(actor=who(), mirror=mirror)
    stop_validation()
    with pytest.raises(Conflict, match="has ended already"):
        job_stop(actor=who(), kind=JobType.VALIDATION, row=asked)
    assert Validation.objects.get().stopped_by == "olga"
