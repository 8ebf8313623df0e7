"""A store's own event notifications: what was missing is looked for at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote_plus

import pytest
from django.test import Client

from deployment import config
from jobs.models import Duty
from mirrors.models import Blocker, ReplicationFailure
from mirrors.models.waived import address_hash
from tests.core.installations.test_s3_events import record
from tests.mirrors.harness import Deployment, deployment

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)


@pytest.fixture
def lm() -> Iterator[Deployment]:
    with deployment() as made:
        made.add_mirror()
        yield made


def deliver(body: Any, region: str = "eu-west-1", secret: str | None = None, prefix: str = "") -> tuple[int, str]:
    token = str(config.current().hook_secret(region)) if secret is None else secret
    text = body if isinstance(body, str) else json.dumps(body)
    headers = {"Authorization": f"Bearer {token}"}
    path = f"{prefix}/hooks/s3/{region}"
    answer = Client().post(path, text, content_type="application/json", headers=headers)
    return answer.status_code, json.loads(answer.content)["message"]


def rest() -> None:
    """Nothing is due for an hour."""
    later = datetime.now(UTC) + HOUR
    Blocker.objects.update(look_at=later)
    Duty.objects.update(due_at=later)


def is_due() -> bool:
    return Duty.objects.get(kind="validate").due_at <= datetime.now(UTC)


def told(*keys: str, bucket: str = "dst") -> dict[str, Any]:
    return {"Records": [record(quote_plus(key), bucket) for key in keys]}


def test_an_object_s_arrival_ends_the_wait_at_once(lm: Deployment) -> None:
    commit = lm.lake.commit(files={"a b": b"1", "c": b"2"})
    held = [lm.lake.address_of(commit, path) for path in ("a b", "c")]
    lm.arrive(*held)
    lm.work()
    rest()
    lm.arrive()
    assert deliver(told(f"lake/{held[0]}")) == (202, "checking 1 missing object now")
    assert is_due()
    assert Blocker.objects.filter(look_at__lte=datetime.now(UTC)).get().path == "a b"
    assert deliver(told(f"lake/{held[1]}", f"lake/{held[0]}"))[1] == "checking 1 missing object now"
    lm.work(look=False)
    assert lm.head() == commit


def commit_at(lm: Deployment, addresses: dict[str, str]) -> str:
    """A commit of files whose objects lie at these addresses."""
    base = lm.lake.commit(files=dict.fromkeys(addresses, b"1"))
    tree = dict(lm.lake.trees[base])
    for path, address in addresses.items():
        tree[path.encode()] = replace(tree[path.encode()], address=address)
        lm.us_store.put(f"s3://src/lake/{address}", b"1")
    commit = lm.lake.record_tree((base,), tree, "odd addresses")
    lm.lake.repository.branches["main"] = commit
    return commit


@pytest.mark.parametrize("name", ["data/a+b", "data/a b", "data/a%2Bb", "data/é+%20", "data/100%", "data/%FF"])
@pytest.mark.parametrize("written", [quote_plus, str], ids=["as AWS and MinIO write it", "as Ceph does"])
def test_the_object_is_found_however_the_store_writes_its_key(
    lm: Deployment, name: str, written: Callable[[str], str]
) -> None:
    commit = commit_at(lm, {"odd": name, "other": "data/other"})
    lm.arrive(name, "data/other")
    lm.work()
    rest()
    lm.arrive()
    assert deliver({"Records": [record(written(f"lake/{name}"))]}) == (202, "checking 1 missing object now")
    assert Blocker.objects.filter(look_at__lte=datetime.now(UTC)).get().path == "odd"
    deliver(told("lake/data/other"))
    lm.work(look=False)
    assert lm.head() == commit


@pytest.mark.parametrize("which", [0, 1])
def test_so_does_that_of_a_metarange_or_range(lm: Deployment, which: int) -> None:
    commit = lm.lake.commit(files={"a": b"1"})
    file = f"_lakefs/{lm.lake.files_of(commit)[which]}"
    lm.arrive(file)
    lm.work()
    rest()
    lm.arrive()
    assert deliver(told(f"lake/{file}"), prefix="/service/replication/v1")[0] == 202
    lm.work(look=False)
    assert lm.head() == commit


def test_what_nobody_misses_or_lies_elsewhere_is_nobody_s_business(lm: Deployment) -> None:
    commit = lm.lake.commit(files={"a": b"1"})
    address = lm.lake.address_of(commit, "a")
    lm.arrive(address)
    lm.work()
    rest()
    strange = told("lake/data/other", f"lake2/{address}", address, f"lake/{commit}", "lake/\x00")
    strange["Records"].append(record("lake/\ud800"))
    nothing = (202, "checking 0 missing objects now")
    assert deliver(strange) == nothing
    assert deliver(told(f"lake/{address}", bucket="src")) == nothing
    assert deliver(told(f"lake/{address}", bucket="d\x00")) == nothing
    assert deliver(told(f"lake/{address}"), region="us-east-1") == nothing
    assert deliver({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "dst"}) == nothing
    assert not is_due()


def test_a_notification_needs_the_installation_s_secret(lm: Deployment) -> None:
    assert deliver(told("a"), secret="wrong")[0] == 401
    assert deliver(told("a"), secret=str(config.current().hook_secret("us-east-1")))[0] == 401
    assert deliver(told("a"), region="mars")[0] == 401
    assert Client().get("/hooks/s3/eu-west-1").status_code == 405


@pytest.mark.parametrize("body", ["", "{", "[]", "{}", "7", "[" * 100_000, '{"Records": [{}]}', "\udcff"])
def test_what_is_no_notification_is_a_400(lm: Deployment, body: str) -> None:
    token = str(config.current().hook_secret("eu-west-1"))
    raw = body.encode("utf-8", "surrogateescape")
    headers = {"Authorization": f"Bearer {token}"}
    answer = Client().post("/hooks/s3/eu-west-1", raw, content_type="application/json", headers=headers)
    assert answer.status_code == 400


def test_a_body_without_end_is_a_413(lm: Deployment) -> None:
    assert deliver(told(*(f"lake/{number:0900}" for number in range(700))))[0] == 413


# --- what the source's store tells of its copies ----------------------------------------------------------------------


def copied(event: str, *keys: str, **details: str) -> dict[str, Any]:
    return {"Records": [record(quote_plus(key), "src", event) | {"replicationEventData": details} for key in keys]}


DONE, FAILED = "s3:Replication:OperationCompletedReplication", "s3:Replication:OperationFailedReplication"


def missing_one(lm: Deployment) -> tuple[str, str]:
    """A commit and the address that its mirror waits for."""
    commit = lm.lake.commit(files={"a b": b"1", "c": b"2"})
    held = lm.lake.address_of(commit, "a b")
    lm.arrive(held)
    lm.work()
    rest()
    return commit, held


def test_a_copy_that_the_source_completed_is_looked_for_at_the_mirror(lm: Deployment) -> None:
    commit, held = missing_one(lm)
    lm.arrive()
    assert deliver(copied(DONE, f"lake/{held}"), "us-east-1") == (202, "checking 1 missing object now")
    assert is_due()
    lm.work(look=False)
    assert lm.head() == commit


def test_the_reason_of_a_failed_copy_is_kept_until_it_is_done(lm: Deployment) -> None:
    _, held = missing_one(lm)
    Blocker.objects.update(cause="Pending", cause_at=datetime.now(UTC))
    gone = {"failureReason": "DstBucketNotFound", "destinationBucket": "arn:aws:s3:::dst"}
    for _ in range(2):
        assert deliver(copied(FAILED, f"lake/{held}", **gone), "us-east-1") == (202, "checking 0 missing objects now")
    failure = ReplicationFailure.objects.get(address_hash=address_hash(held))
    assert (failure.bucket, failure.reason) == ("dst", "DstBucketNotFound")
    assert Blocker.objects.get().cause_at is None, "the store is asked again at once"
    deliver(copied(DONE, f"lake/{held}"), "us-east-1")
    assert not ReplicationFailure.objects.filter(address_hash=address_hash(held)).exists()


def test_failures_of_other_places_are_nobody_s_and_older_ones_go(lm: Deployment) -> None:
    _, held = missing_one(lm)
    deliver(copied(FAILED, "elsewhere/x"), "us-east-1")
    deliver(copied(FAILED, f"lake/{held}"), "eu-west-1")
    assert not ReplicationFailure.objects.exists()
    deliver(copied(FAILED, "lake/old"), "us-east-1")
    ReplicationFailure.objects.update(at=datetime.now(UTC) - timedelta(hours=25))
    deliver(copied(FAILED, f"lake/{held}"), "us-east-1")
    assert address_hash("old") not in ReplicationFailure.objects.values_list("address_hash", flat=True)


def test_a_copy_to_another_bucket_is_not_looked_for(lm: Deployment) -> None:
    _, held = missing_one(lm)
    other = copied(DONE, f"lake/{held}", destinationBucket="arn:aws:s3:::another")
    assert deliver(other, "us-east-1")[1] == "checking 0 missing objects now"
