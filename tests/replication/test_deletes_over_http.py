"""Deletions that a rule follows on a real S3 server: what DELETE with a condition does, and buckets with versions."""

from __future__ import annotations

from typing import Any

import pytest

from replication.models import Approval, OpenObject, Rule
from tests.replication.test_over_http import Server, cleaned, heads, r, s3, server
from tests.replication.world import HOME, World

pytestmark = pytest.mark.django_db
FIXTURES = (Server, r, s3, server)
"""Of the other module; used by name."""


def _look(r: World) -> None:
    for _ in range(2):
        Rule.objects.update(scan_wanted=True)
        r.scan()


def _due(r: World) -> None:
    """More than a minute goes by."""
    r.link().open_objects.filter(status="deleting").update(next_try=r.link().rule.created_at)
    r.copy()


def _copied(r: World, s3: Any, **more: Any) -> None:
    for key in ("a", "b/ü +", "c"):
        s3.put_object(Bucket="src", Key=key, Body=key.encode())
    r.rule((HOME, "s3://out"), markers=True, pinned=False, **{"delete_percent": 100, **more})
    r.work()
    _look(r)
    assert set(heads(s3, "out")) == {"a", "b/ü +", "c"}


def test_what_is_deleted_is_followed_and_nothing_else(r: World, s3: Any) -> None:
    _copied(r, s3)
    s3.put_object(Bucket="out", Key="theirs", Body=b"theirs")
    s3.delete_object(Bucket="src", Key="b/ü +")
    s3.delete_object(Bucket="src", Key="c")
    _look(r)
    s3.put_object(Bucket="out", Key="c", Body=b"overwritten")
    _due(r)
    assert set(heads(s3, "out")) == {"a", "c", "theirs"} and r.rows() == []
    _look(r)
    _due(r)
    assert set(heads(s3, "out")) == {"a", "c", "theirs"}


def test_what_was_deleted_in_a_bucket_with_versions_can_be_had_back(r: World, s3: Any) -> None:
    versioned(s3, "Enabled")
    try:
        _copied(r, s3)
        s3.delete_object(Bucket="src", Key="b/ü +")
        _look(r)
        _due(r)
        assert set(heads(s3, "out")) == {"a", "c"} and r.rows() == []
        told = s3.list_object_versions(Bucket="out", Prefix="b/")
        assert {one["Key"] for one in told["DeleteMarkers"] if one["IsLatest"]} == {"b/ü +"}
        assert any(one["Size"] == len("b/ü +".encode()) for one in told["Versions"])
    finally:
        versioned(s3, "Suspended")


def test_a_deletion_that_the_store_ignores_stays_open(r: World, s3: Any, server: Server) -> None:
    """MinIO does so, for a key with a marker of the id null below its latest version."""
    if server.name == "moto":
        pytest.skip("moto knows no markers of the id null")
    versioned(s3, "Enabled")
    try:
        s3.put_object(Bucket="out", Key="b/ü +", Body=b"before")
        versioned(s3, "Suspended")
        s3.delete_object(Bucket="out", Key="b/ü +")
        versioned(s3, "Enabled")
        _copied(r, s3)
        versioned(s3, "Suspended")
        s3.delete_object(Bucket="src", Key="b/ü +")
        _look(r)
        _due(r)
        left = {row.name: row.code for row in r.rows()}
        assert left == ({} if "b/ü +" not in heads(s3, "out") else {"b/ü +": "TargetFailed"})
        assert bool(left) == (server.name == "minio")
    finally:
        cleaned(s3, "out")


def versioned(s3: Any, state: str) -> None:
    s3.put_bucket_versioning(Bucket="out", VersioningConfiguration={"Status": state})


def test_what_needs_approval_stays_until_then(r: World, s3: Any) -> None:
    _copied(r, s3, delete_percent=10)
    s3.delete_object(Bucket="src", Key="c")
    _look(r)
    _due(r)
    assert "c" in heads(s3, "out") and Approval.objects.get().number == 1


def test_deletions_both_ways(r: World, s3: Any) -> None:
    """Between two buckets of one server."""
    for name, other in (("src", "out"), ("out", "src")):
        told = {"conflict": "newest", "markers": True, "delete_percent": 100, "pinned": False}
        r.rule((HOME, f"s3://{other}"), name=name, uri=f"s3://{name}", **told)
    for key in ("a", "b/ü +", "c", "stays"):
        s3.put_object(Bucket="src", Key=key, Body=key.encode())
    for _ in range(2):
        _look(r)
        r.copy()
    assert set(heads(s3, "out")) == {"a", "b/ü +", "c", "stays"}
    s3.delete_object(Bucket="src", Key="a")
    s3.delete_object(Bucket="out", Key="b/ü +")
    s3.delete_object(Bucket="out", Key="c")
    s3.put_object(Bucket="src", Key="c", Body=b"written since")
    for _ in range(3):
        _look(r)
        OpenObject.objects.filter(status="deleting").update(next_try=r.link(name="src").rule.created_at)
        r.copy()
    assert set(heads(s3, "src")) == set(heads(s3, "out")) == {"c", "stays"}
    assert s3.get_object(Bucket="out", Key="c")["Body"].read() == b"written since"
    assert not OpenObject.objects.exists()
