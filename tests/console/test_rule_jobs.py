"""Replication rules on the pages that are about everything: jobs, and what happened last."""

from __future__ import annotations

import pytest
from django.test import Client

from audit.models import AuditEvent
from core.access.documents import allow, policy_document
from jobs.models import Duty
from rbac import services as rbac
from rbac.models import User
from replication.models import Rule
from replication.services import rules
from tests.api import Api
from tests.cast import person
from tests.mirrors.factories import make_mirror, make_repository
from tests.replication.factories import NOW, a_rule

pytestmark = pytest.mark.django_db
JOBS = "/service/replication/v1/jobs"


def failing() -> tuple[Rule, Duty]:
    """A rule whose scan fails, and that duty; beside a mirror, without which the overview tells of nothing."""
    make_mirror("pond-eu", make_repository("pond", now=NOW), now=NOW)
    rule = a_rule("logs")
    duties = Duty.objects.filter(kind="replication-scan", subject=-rule.pk)
    duties.update(failures=3, outcome="s3 answered 403 to list", ended_at=rule.created_at)
    return rule, duties.get()


def lister() -> User:
    """Somebody who may list mirrors, and knows nothing of rules."""
    made = person("lena")
    document = policy_document("Lists", allow(["fs:ListRepositories", "fs:ReadBranch"]))
    rbac.policy_attach(actor="system:tests", policy=rbac.policy_put(actor="system:tests", document=document), user=made)
    return made


def page(user: User, path: str) -> str:
    client = Client()
    client.force_login(user)
    answer = client.get(path)
    assert answer.status_code == 200, answer.content[:300]
    return answer.content.decode()


def test_duties_of_rules_are_jobs_with_their_names(teammate: User) -> None:
    rule, duty = failing()
    shown = page(teammate, "/jobs/?state=any")
    assert "Replication scan" in shown and "logs to eu-west-1" in shown and 'href="/replication/logs/"' in shown
    assert "s3 answered 403 to list" in page(teammate, "/jobs/")
    assert "Replication scan" in page(teammate, f"/jobs/duty-{duty.pk}/log/")
    jobs = {job["kind"]: job for job in Api(teammate).call("GET", JOBS)[1]["results"]}
    assert set(jobs) == {"replication-scan", "replication-link"}
    scan = jobs["replication-scan"]
    assert (scan["rule"], scan["mirror"], scan["branch"], scan["source_region"], scan["state"]) == (
        "logs",
        None,
        None,
        "us-east-1",
        "failing",
    )
    found = Api(teammate).call("GET", f"{JOBS}?kind=replication-link")[1]["results"]
    assert [job["rule"] for job in found] == [rule.name]


def test_who_may_not_read_a_rule_is_told_nothing_of_it(owner: User) -> None:
    _, duty = failing()
    rules.rule_pause(actor=owner, name="logs", paused=True, stated={"pause_reason": "secret plans"})
    lena = lister()
    for path in ("/", "/jobs/", "/jobs/?state=any"):
        assert "logs" in page(owner, path), path
        shown = page(lena, path)
        assert "logs" not in shown and "secret plans" not in shown and "403 to list" not in shown, path
    assert Api(lena).call("GET", f"{JOBS}/duty-{duty.pk}")[0] == 404
    assert Api(lena).call("GET", JOBS)[1]["results"] == []


def test_what_people_did_to_rules_is_told_in_their_words(owner: User) -> None:
    failing()
    rules.rule_pause(actor=owner, name="logs", paused=True, stated={"pause_reason": "new disks"})
    rules.rule_pause(actor=owner, name="logs", paused=False)
    rules.rule_scan(actor=owner, name="logs")
    shown = page(owner, "/")
    for told in ("paused rule <strong>logs</strong>: “new disks”", "compared the places of rule <strong>logs</strong>"):
        assert told in shown, told
    assert "<strong>logs</strong>: replication scan failed, s3 answered 403 to list" in shown


def test_a_duty_is_run_now_by_who_may_run_the_rule(teammate: User, owner: User) -> None:
    _, duty = failing()
    denied = Api(teammate).call("POST", f"{JOBS}/duty-{duty.pk}/retry")
    assert denied[0] == 403 and "fs:OperateReplicationRule" in denied[1]["message"]
    assert Api(owner).call("POST", f"{JOBS}/duty-{duty.pk}/retry")[0] == 202
    event = AuditEvent.objects.get(verb="retry")
    assert (event.subject, event.action, event.after) == (
        "replication/logs",
        "fs:OperateReplicationRule",
        {"retry": "replication-scan", "rule": "logs"},
    )
