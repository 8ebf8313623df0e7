"""What the fields of the configuration do to the engine: intervals, regions, pages, webhooks."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import replace
from io import StringIO
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

import pytest
import yaml
from django.core.management import CommandError, call_command
from django.test import Client

from core.installations.webhook_action import EVENTS
from deployment import config
from jobs import duties, kinds
from mirrors.models import Mirror
from rbac import services as rbac
from rbac.models import User
from tests.deployment.test_config import changed
from tests.mirrors.harness import Deployment

pytestmark = pytest.mark.django_db(transaction=True)

MIRRORS = "/service/replication/v1/repositories/lake/mirrors"
REGIONS = {
    "region": "us-east-1",
    "dst_endpoints": {"eu-west-1": "http://eu", "ap-south-1": "http://ap"},
    "serve_regions": ["us-east-1", "eu-west-1"],
}


def tell(monkeypatch: pytest.MonkeyPatch, told: Mapping[str, Any]) -> None:
    settings = config.parse(told)
    monkeypatch.setattr(config, "current", lambda: settings)


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("mirrors_manager.process_mirrors_interval_duration", {"manage"}),
        ("commit_sensor.process_branches_duration", {"sense", "copy", "export"}),
        ("validator.run_interval", {"validate", "promote"}),
    ],
)
def test_each_interval_is_that_of_its_duties(monkeypatch: pytest.MonkeyPatch, path: str, names: set[str]) -> None:
    tell(monkeypatch, changed(path, "7s"))
    assert {kind.name for kind in kinds.registered() if kind.interval() == 7} == names


def test_only_regions_that_are_served_are_worked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    tell(monkeypatch, changed("region", "us-east-1") | REGIONS)
    assert [duties.queue_name("copy", region) for region in ("eu-west-1", "ap-south-1")] == ["us-east-1", "ap-south-1"]


@pytest.mark.parametrize(
    ("field", "call"), [("list_branch_page_size", "list_branches"), ("log_commit_page_size", "log_commits")]
)
def test_the_source_is_read_in_pages_of_the_size_that_was_told(
    lm: Deployment, monkeypatch: pytest.MonkeyPatch, field: str, call: str
) -> None:
    head = [lm.lake.commit(files={f"k{n}": b"x"}) for n in range(5)][-1]
    for n in range(5):
        lm.lake.repository.branches[f"branch-{n}"] = head
    lm.arrive()
    now = config.current()
    told = replace(now, commit_sensor=replace(now.commit_sensor, **{field: 2}))
    monkeypatch.setattr(config, "current", lambda: told)
    with mock.patch.object(lm.us, call, side_effect=getattr(lm.us, call)) as calls:
        lm.work()
    assert {asked.kwargs["amount"] for asked in calls.call_args_list} == {2}
    assert calls.call_count >= 3
    assert {lm.head(f"branch-{n}") for n in range(5)} == {head}


def test_a_page_of_mirrors_is_as_large_as_was_told_unless_the_caller_says(
    owner: User, lm: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Mirror.objects.get().source
    for number in range(2, 5):
        Mirror.objects.create(
            name=f"lake-{number}", source=source, region="eu-west-1", storage_namespace=f"s3://dst/{number}"
        )
    told = replace(config.current(), list_mirrors_page_size=2)
    monkeypatch.setattr(config, "current", lambda: told)
    issued = rbac.key_create(actor="system:tests", user=owner)
    pair = base64.b64encode(f"{issued.key.key_id}:{issued.secret}".encode()).decode()
    answers = [
        Client().get(path + query, headers={"Authorization": f"Basic {pair}"}).json()
        for path in (MIRRORS, "/service/replication/v1/mirrors")
        for query in ("", "?amount=0", "?amount=-1", "?amount=3", "?amount=1000", "?amount=1001")
    ]
    assert [answer.get("field") for answer in answers] == [None, None, None, None, None, "amount"] * 2
    shown = [len(answer["results"]) for answer in answers if "results" in answer]
    everything = Mirror.objects.count()
    assert everything > 3 and shown == [2, 2, 2, 3, everything] * 2
    assert answers[0]["pagination"] == {"has_more": True, "next_offset": "lake-3", "max_per_page": 1000, "results": 2}


def test_a_webhook_needs_the_secret_that_was_told(lm: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    told = replace(config.current(), hooks=config.Hooks({"us-east-1": config.Secret("told")}))
    monkeypatch.setattr(config, "current", lambda: told)
    path, body = "/hooks/lakefs/us-east-1", {"repository_id": "lake"}
    answers = [
        Client().post(path, body, content_type="application/json", headers={"Authorization": f"Bearer {secret}"})
        for secret in ("told", "guessed")
    ]
    assert [answer.status_code for answer in answers] == [202, 401]


def test_the_file_for_a_webhook_has_the_address_and_a_secret_that_is_let_in(lm: Deployment) -> None:
    out, told = StringIO(), StringIO()
    call_command("webhook", "us-east-1", "https://mirror.example.com/", stdout=out, stderr=told)
    action = yaml.safe_load(out.getvalue())
    assert action["on"].keys() == set(EVENTS)
    properties = action["hooks"][0]["properties"]
    assert properties["url"] == "https://mirror.example.com/hooks/lakefs/us-east-1"
    variable, _, secret = told.getvalue().rstrip().rpartition(": ")[2].partition("=")
    assert properties["headers"] == {"Authorization": f"Bearer {{{{ ENV.{variable} }}}}"}
    assert secret not in out.getvalue()
    path, body = urlsplit(properties["url"]).path, {"repository_id": "lake"}
    headers = {"Authorization": f"Bearer {secret}"}
    assert Client().post(path, body, content_type="application/json", headers=headers).status_code == 202
    clear = StringIO()
    call_command("webhook", "us-east-1", "https://mirror.example.com/", "--with-secret", stdout=clear)
    assert yaml.safe_load(clear.getvalue())["hooks"][0]["properties"]["headers"] == headers


@pytest.mark.parametrize(
    ("region", "url", "told"),
    [("mars", "https://x", "unknown region 'mars'"), ("us-east-1", "mirror.example.com", "is not an address")],
)
def test_a_webhook_for_nowhere_is_refused(lm: Deployment, region: str, url: str, told: str) -> None:
    with pytest.raises(CommandError, match=told):
        call_command("webhook", region, url, stdout=StringIO())
