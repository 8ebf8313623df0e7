"""The calls of the API's document, and things for their addresses to name."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import schemathesis
from django.test import Client

from core.installations.settings import Secrets, Wish
from deployment import config
from exports.models import ExportVerification
from installations.services import installation_create
from mirrors.models import Mirror, Run, Sweep, Validation, Waiver
from rbac.models import User
from rbac.services import key_create
from replication.models import Approval
from tests.exports.test_pages import a_run, an_export
from tests.mirrors.harness import Deployment, deployment
from tests.notifications.factories import a_window, an_alert, make_channel
from tests.replication.factories import a_pass, in_trouble
from web.openapi import document

OPERATIONS = {
    one.label: one for one in (found.ok() for found in schemathesis.openapi.from_dict(document()).get_all_operations())
}


@pytest.fixture
def worked() -> Iterator[Deployment]:
    """A deployment whose mirror has its first commit."""
    with deployment() as made:
        made.add_mirror()
        made.lake.commit(files={"a": b"1"})
        made.arrive()
        made.work()
        yield made


@pytest.fixture
def real(worked: Deployment, owner: User) -> dict[str, Any]:
    """What the parameters of a path may be, so that a call gets further than 404."""
    mirror, now = Mirror.objects.get(), Mirror.objects.get().created_at
    waiver = Waiver.objects.create(mirror=mirror, reason="lost", given_by="olga", given_at=now)
    job = Validation.objects.create(mirror=mirror, what="all", depth="etag", key="k", asked_at=now)
    run = Run.objects.create(mirror=mirror, started_at=now)
    export = an_export(repository="lake")
    a_run(export, phase="copy", outcome="export-failed", failed=1, ended_at=now)
    ExportVerification.objects.create(export=export, ref="0" * 64, path=export.path, started_at=now)
    settings = {"lakefs_endpoint": "http://lakefs.mars", "lakefs_access_key_id": "A", "store_access": "chain"}
    installation_create(actor=owner, wish=Wish("mars-1", **settings), secrets=Secrets("s"))
    rule = in_trouble()
    a_pass(rule, pk=run.pk)
    link = rule.links.order_by("number")[0]
    waits = {"number": 2, "bytes": 2, "of": 9, "asked_at": now, "expires_at": now + timedelta(days=7)}
    return {
        "repository": "lake",
        "mirror_id": "lake-eu",
        "installation": "us-east-1",
        "commit": worked.head(),
        "waiver": waiver.pk,
        "sweep": Sweep.objects.create(mirror=mirror, began_at=now, pins="p").pk,
        "job": job.pk,
        "number": run.pk,
        "branch": "main",
        "rule": "orders",
        "approval": Approval.objects.create(link=link, **waits).pk,
        "user_id": owner.username,
        "group_id": "Viewers",
        "policy_id": "ReadAll",
        "access_key_id": key_create(actor="system:tests", user=owner).key.key_id,
        "user": "tom",
        "session": "0" * 16,
        "region": "mars-1",
        "channel": make_channel("http://127.0.0.1:9/").name,
        "alert": an_alert(),
        "window": a_window(),
    }


@pytest.fixture
def owner_there(owner: User, real: dict[str, Any]) -> Client:
    """An administrator, where there is something to call."""
    client = Client(raise_request_exception=False)
    client.force_login(owner)
    return client


def authorized(label: str) -> dict[str, str]:
    """Hooks know nobody but who has their secret."""
    if "/hooks/" not in label:
        return {}
    return {"Authorization": f"Bearer {config.current().hook_secret('us-east-1')}"}
