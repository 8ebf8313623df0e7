"""What is written in one region arrives in the other, and the faults do what they say."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sandbox.client import Sandbox, SandboxError
from sandbox.fixture import running_sandbox
from sandbox.lakefs_http import LakeFS
from tests.sandbox.conftest import s3


def body_at(sandbox: Sandbox, key: str) -> bytes | None:
    """An object at the destination, None if it is not there."""
    try:
        found = s3(sandbox.destination).get_object(Bucket=sandbox.destination.bucket, Key=key)
    except ClientError as error:
        if error.response["Error"]["Code"] == "NoSuchKey":
            return None
        raise
    content: bytes = found["Body"].read()
    return content


def put(sandbox: Sandbox, key: str, body: bytes = b"content", **options: Any) -> Any:
    return s3(sandbox.source).put_object(Bucket=sandbox.source.bucket, Key=key, Body=body, **options)


def eastward(sandbox: Sandbox) -> dict[str, Any]:
    """The status of the direction from the source to the destination."""
    directions = sandbox.status()["replication"]["directions"]
    return next(d for d in directions if d["destination"] == sandbox.destination.name)


def commit(lakefs: LakeFS, repo: str, path: str = "a") -> None:
    lakefs.upload(repo, "main", path, b"hello")
    lakefs.commit(repo, "main", f"add {path}", {})


def test_an_object_keeps_key_etag_and_metadata(sandbox: Sandbox) -> None:
    key = "kept/a b+c%2Fü?#.txt"
    put(sandbox, key, b"x" * 1000, Metadata={"owner": "me"}, ContentType="text/csv")
    assert sandbox.wait_replicated()
    ours, theirs = (s3(r).head_object(Bucket=r.bucket, Key=key) for r in (sandbox.source, sandbox.destination))
    for name in ("ETag", "Metadata", "ContentType", "ContentLength"):
        assert ours[name] == theirs[name]


def test_a_multipart_object_keeps_its_etag(sandbox: Sandbox) -> None:
    client, bucket, key = s3(sandbox.source), sandbox.source.bucket, "kept/multipart"
    upload = client.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
    where = {"Bucket": bucket, "Key": key, "UploadId": upload}
    parts = [
        {"PartNumber": n, "ETag": client.upload_part(**where, PartNumber=n, Body=body)["ETag"]}
        for n, body in ((1, b"a" * (5 << 20)), (2, b"b"))
    ]
    client.complete_multipart_upload(**where, MultipartUpload={"Parts": parts})
    assert sandbox.wait_replicated()
    etag = s3(sandbox.destination).head_object(Bucket=sandbox.destination.bucket, Key=key)["ETag"]
    assert etag == client.head_object(Bucket=bucket, Key=key)["ETag"]
    assert etag.endswith('-2"')


def test_both_directions_without_echo(sandbox: Sandbox) -> None:
    west = sandbox.destination
    s3(west).put_object(Bucket=west.bucket, Key="echo/back", Body=b"from the west")
    put(sandbox, "echo/forth")
    assert sandbox.wait_replicated()
    found = s3(sandbox.source).list_objects_v2(Bucket=sandbox.source.bucket, Prefix="echo/")["Contents"]
    assert [item["Key"] for item in found] == ["echo/back", "echo/forth"]
    versions = s3(west).list_object_versions(Bucket=west.bucket, Prefix="echo/")["Versions"]
    assert len(versions) == 2


def test_nothing_is_replicated_between_regions_where_that_is_not_wanted(tmp_path: Path) -> None:
    with running_sandbox(tmp_path, lakefs="", unreplicated="eu-west-1:us-east-1") as sandbox:
        west, east = sandbox.destination, sandbox.source
        s3(west).put_object(Bucket=west.bucket, Key="one-way/back", Body=b"from the west")
        put(sandbox, "one-way/forth")
        assert sandbox.wait_replicated()
        assert "Contents" not in s3(east).list_objects_v2(Bucket=east.bucket, Prefix="one-way/back")
        assert s3(west).list_objects_v2(Bucket=west.bucket, Prefix="one-way/")["KeyCount"] == 2
        rules = s3(east).get_bucket_replication(Bucket=east.bucket)["ReplicationConfiguration"]["Rules"]
        assert [rule["ID"] for rule in rules] == [f"to-{west.bucket}"]
        with pytest.raises(ClientError):
            s3(west).get_bucket_replication(Bucket=west.bucket)


def test_deletes_follow_unless_told_otherwise(sandbox: Sandbox) -> None:
    for key in ("gone/1", "gone/2"):
        put(sandbox, key)
    sandbox.wait_replicated()
    s3(sandbox.source).delete_object(Bucket=sandbox.source.bucket, Key="gone/1")
    sandbox.wait_replicated()
    sandbox.replicate_deletes(False)
    s3(sandbox.source).delete_object(Bucket=sandbox.source.bucket, Key="gone/2")
    sandbox.wait_replicated()
    sandbox.replicate_deletes(True)
    assert body_at(sandbox, "gone/1") is None
    assert body_at(sandbox, "gone/2") == b"content"


def test_lakemirrors_own_files_stay_where_they_are(sandbox: Sandbox) -> None:
    put(sandbox, "some/_lakemirror/mirror.json")
    put(sandbox, "some/_lakemirror2/file")
    assert sandbox.wait_replicated()
    assert body_at(sandbox, "some/_lakemirror/mirror.json") is None
    assert body_at(sandbox, "some/_lakemirror2/file") is not None


def test_what_is_held_back_arrives_when_released(sandbox: Sandbox) -> None:
    sandbox.hold("held/*b*")
    for name in "abc":
        put(sandbox, f"held/{name}")
    assert sandbox.wait_replicated()
    assert [body_at(sandbox, f"held/{name}") for name in "abc"] == [b"content", None, b"content"]
    status = eastward(sandbox)
    assert status["held"] == 1
    assert status["stopped"][0]["key"] == "held/b"
    assert sandbox.release("held/*b*") == 1
    assert sandbox.wait_replicated()
    assert body_at(sandbox, "held/b") == b"content"
    put(sandbox, "held/bb")
    assert sandbox.wait_replicated()
    assert body_at(sandbox, "held/bb") == b"content"


@pytest.mark.parametrize("kind", ["data", "range", "metarange"])
def test_the_next_one_of_a_kind_is_held_back(sandbox: Sandbox, lakefs: LakeFS, kind: str) -> None:
    repo = f"next-{kind}"
    lakefs.create_repository(repo, f"s3://{sandbox.source.bucket}/{repo}")
    sandbox.hold(kind=kind, count=1)
    commit(lakefs, repo, "first")
    commit(lakefs, repo, "second")
    assert sandbox.wait_replicated()
    assert [(s["kind"], s["action"]) for s in eastward(sandbox)["stopped"]] == [(kind, "hold")]
    assert sandbox.release() == 1


def test_what_is_lost_can_be_sent_again(sandbox: Sandbox) -> None:
    sandbox.lose("lost/*", count=1)
    put(sandbox, "lost/1")
    sandbox.wait_replicated()
    put(sandbox, "lost/2")
    sandbox.wait_replicated()
    assert (body_at(sandbox, "lost/1"), body_at(sandbox, "lost/2")) == (None, b"content")
    assert eastward(sandbox)["lost"] == 1
    assert sandbox.release() == 1
    sandbox.wait_replicated()
    assert body_at(sandbox, "lost/1") == b"content"


@pytest.mark.parametrize("silent", [False, True])
def test_a_corrupted_object_is_sent_again_whole(sandbox: Sandbox, silent: bool) -> None:
    key = f"corrupt/{silent}"
    sandbox.corrupt("corrupt/*", silent=silent)
    etag = put(sandbox, key)["ETag"]
    assert sandbox.wait_replicated()
    damaged = body_at(sandbox, key)
    assert damaged is not None
    assert sum(a != b for a, b in zip(damaged, b"content", strict=True)) == 1
    head = s3(sandbox.destination).head_object(Bucket=sandbox.destination.bucket, Key=key)
    assert (head["ETag"] == etag) is silent
    assert sandbox.release() == 1
    assert sandbox.wait_replicated()
    assert body_at(sandbox, key) == b"content"


def test_an_empty_object_is_corrupted_too(sandbox: Sandbox) -> None:
    sandbox.corrupt("corrupt/empty")
    put(sandbox, "corrupt/empty", b"")
    assert sandbox.wait_replicated()
    assert body_at(sandbox, "corrupt/empty") == b"\x01"


def test_nothing_moves_while_replication_is_stopped(sandbox: Sandbox) -> None:
    sandbox.stop()
    put(sandbox, "stopped/1")
    assert not sandbox.wait_replicated(0.3)
    assert body_at(sandbox, "stopped/1") is None
    sandbox.start()
    assert sandbox.wait_replicated()
    assert body_at(sandbox, "stopped/1") == b"content"


def test_a_delay_holds_and_is_lifted_for_what_waits(sandbox: Sandbox) -> None:
    sandbox.delay(60)
    put(sandbox, "late/1")
    assert not sandbox.wait_replicated(0.3)
    sandbox.delay(0)
    assert sandbox.wait_replicated()
    assert body_at(sandbox, "late/1") == b"content"


def test_metadata_may_arrive_before_its_objects(sandbox: Sandbox, lakefs: LakeFS, repo: str) -> None:
    sandbox.order("metadata-first")
    sandbox.stop()
    for n in range(120):
        lakefs.upload(repo, "main", f"{n}", b"x")
    lakefs.commit(repo, "main", "many", {})
    sandbox.hold(f"{repo}/data/*")
    sandbox.start()
    sandbox.wait_replicated()
    assert eastward(sandbox)["held"] == 120
    assert sandbox.release() == 120


def test_a_stopped_store_is_tried_again_until_it_answers(sandbox: Sandbox) -> None:
    sandbox.server_faults(sandbox.destination.name, "s3", "refuse")
    put(sandbox, "retried/1")
    assert not sandbox.wait_replicated(0.3)
    assert eastward(sandbox)["last_error"]
    sandbox.server_faults(sandbox.destination.name, "s3", "ok")
    assert sandbox.wait_replicated()
    assert body_at(sandbox, "retried/1") == b"content"


def test_replication_takes_well_under_a_second(sandbox: Sandbox) -> None:
    began = time.monotonic()
    put(sandbox, "quick/1")
    assert sandbox.wait_replicated()
    assert time.monotonic() - began < 5  # typically 0.05; the machine may be busy


def test_nonsense_is_refused_with_a_message(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxError, match="order is one of"):
        sandbox.order("sideways")
    with pytest.raises(SandboxError, match="'explode' is not a valid Mode"):
        sandbox.server_faults(sandbox.source.name, "s3", "explode")
    with pytest.raises(SandboxError, match="no sandbox at"):
        Sandbox("http://127.0.0.1:1").status()
