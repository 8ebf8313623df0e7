"""The region's two services over HTTP: keep-alive, keys, faults."""

from __future__ import annotations

import http.client
import time
from pathlib import Path
from urllib.parse import urlsplit

import boto3
import lakefs_sdk
import pytest
import requests
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from sandbox.client import Sandbox, SandboxError
from sandbox.lakefs_http import LakeFS, LakeFSError
from tests.sandbox.conftest import s3


@pytest.fixture
def api(sandbox: Sandbox) -> lakefs_sdk.ApiClient:
    configuration = lakefs_sdk.Configuration(
        host=f"{sandbox.source.lakefs_url}/api/v1",
        username=Sandbox.access_key_id,
        password=Sandbox.secret_access_key,
    )
    configuration.retries = 0
    return lakefs_sdk.ApiClient(configuration)


def test_lakefs_sdk_reads_every_answer(api: lakefs_sdk.ApiClient, repo: str, tmp_path: Path) -> None:
    file = tmp_path / "content"
    file.write_bytes(b"hello")
    objects, branches = lakefs_sdk.ObjectsApi(api), lakefs_sdk.BranchesApi(api)
    assert lakefs_sdk.ConfigApi(api).get_config().version_config.version
    lakefs_sdk.HealthCheckApi(api).health_check()
    objects.upload_object(repo, "main", "dir/a ü?#.txt", content=str(file))
    made = lakefs_sdk.CommitsApi(api).commit(repo, "main", lakefs_sdk.CommitCreation(message="one"))
    branches.create_branch(repo, lakefs_sdk.BranchCreation(name="dev", source="main"))
    objects.upload_object(repo, "dev", "b", content=str(file))
    assert branches.diff_branch(repo, "dev").results[0].type == "added"
    lakefs_sdk.CommitsApi(api).commit(repo, "dev", lakefs_sdk.CommitCreation(message="two"))
    refs = lakefs_sdk.RefsApi(api)
    assert refs.diff_refs(repo, "main", "dev").results[0].path == "b"
    assert refs.merge_into_branch(repo, "dev", "main", merge=lakefs_sdk.Merge()).reference
    assert [commit.id for commit in refs.log_commits(repo, "main").results][-2] == made.id
    assert objects.get_object(repo, "main", "dir/a ü?#.txt") == b"hello"
    assert objects.stat_object(repo, "main", "dir/a ü?#.txt").size_bytes == 5
    listed = objects.list_objects(repo, "main", delimiter="/").results
    assert [(item.path, item.path_type) for item in listed] == [("b", "object"), ("dir/", "common_prefix")]
    lakefs_sdk.ExperimentalApi(api).hard_reset_branch(repo, "dev", made.id)
    assert branches.get_branch(repo, "dev").commit_id == made.id
    assert lakefs_sdk.TagsApi(api).create_tag(repo, lakefs_sdk.TagCreation(id="v1", ref="main")).id == "v1"


def test_many_requests_share_a_connection(sandbox: Sandbox) -> None:
    where = urlsplit(sandbox.source.lakefs_url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=5)
    for _ in range(3):
        connection.request("POST", "/api/v1/repositories", body=b"x" * 100_000)  # refused before the body is read
        assert connection.getresponse().read()
        first = connection.sock
        connection.request("GET", "/api/v1/healthcheck")
        assert connection.getresponse().read() == b""
        assert connection.sock is first


def test_the_store_knows_one_access_key(sandbox: Sandbox) -> None:
    with pytest.raises(ClientError, match="InvalidAccessKeyId"):
        s3(sandbox.source, key="AKIASOMEBODYELSE").list_buckets()
    assert requests.get(f"{sandbox.source.s3_url}/{sandbox.source.bucket}/x", timeout=5).status_code == 403


def test_a_presigned_link_leads_to_the_object(sandbox: Sandbox, lakefs: LakeFS, repo: str) -> None:
    lakefs.upload(repo, "main", "linked", b"by link")
    path = f"/repositories/{repo}/refs/main/objects/stat"
    link = lakefs.call("GET", path, params={"path": "linked", "presign": "true"})["physical_address"]
    assert requests.get(link, timeout=5).content == b"by link"


def test_listings_page_and_fold_as_s3_does(sandbox: Sandbox) -> None:
    client, bucket = s3(sandbox.source), sandbox.source.bucket
    for key in ("ls/a/1", "ls/a/2", "ls/b", "ls/c/1", "ls/d", "ls/gone"):
        client.put_object(Bucket=bucket, Key=key, Body=b"")
    client.delete_object(Bucket=bucket, Key="ls/gone")
    pages = list(
        client.get_paginator("list_objects_v2").paginate(
            Bucket=bucket, Prefix="ls/", Delimiter="/", PaginationConfig={"PageSize": 1}
        )
    )
    folders = [prefix["Prefix"] for page in pages for prefix in page.get("CommonPrefixes", [])]
    keys = [item["Key"] for page in pages for item in page.get("Contents", [])]
    assert (folders, keys) == (["ls/a/", "ls/c/"], ["ls/b", "ls/d"])
    after = client.list_objects_v2(Bucket=bucket, Prefix="ls/", StartAfter="ls/a/2")["Contents"]
    assert [item["Key"] for item in after] == ["ls/b", "ls/c/1", "ls/d"]


REFUSALS = {"error": 500, "unavailable": 503, "throttle": 429, "revoked": 401, "denied": 403, "full": 507}


@pytest.mark.parametrize(("mode", "status"), REFUSALS.items())
def test_lakefs_told_to_fail_fails_so_often(sandbox: Sandbox, lakefs: LakeFS, mode: str, status: int) -> None:
    sandbox.server_faults(sandbox.source.name, "lakefs", mode, count=2)
    for _ in range(2):
        with pytest.raises(LakeFSError) as refused:
            lakefs.call("GET", "/repositories")
        assert refused.value.status == status
    assert lakefs.call("GET", "/repositories")


def test_a_fault_can_be_of_some_paths_and_methods_only(sandbox: Sandbox, lakefs: LakeFS, repo: str) -> None:
    sandbox.server_faults(sandbox.source.name, "lakefs", "error", path="*/branches/main", method="GET")
    with pytest.raises(LakeFSError):
        lakefs.head(repo, "main")
    assert lakefs.branches(repo)


def test_an_answer_of_500_may_come_after_the_work_was_done(sandbox: Sandbox, lakefs: LakeFS, repo: str) -> None:
    sandbox.server_faults(sandbox.source.name, "lakefs", "late-error", count=1)
    sandbox.server_faults(sandbox.source.name, "s3", "late-error", method="PUT", path="*/late")
    with pytest.raises(LakeFSError) as refused:
        lakefs.create_branch(repo, "side", "main")
    assert refused.value.status == 500
    assert "side" in lakefs.branches(repo)
    with pytest.raises(ClientError, match="InternalError"):
        s3(sandbox.source).put_object(Bucket=sandbox.source.bucket, Key="late", Body=b"x")
    assert s3(sandbox.source).get_object(Bucket=sandbox.source.bucket, Key="late")["Body"].read() == b"x"


def test_listings_may_be_told_to_show_nothing(sandbox: Sandbox, lakefs: LakeFS, repo: str) -> None:
    s3(sandbox.source).put_object(Bucket=sandbox.source.bucket, Key="shown", Body=b"x")
    sandbox.server_faults(sandbox.source.name, "", "empty", count=1)
    assert lakefs.branches(repo) == {}
    assert "Contents" not in s3(sandbox.source).list_objects_v2(Bucket=sandbox.source.bucket)
    assert lakefs.branches(repo)


@pytest.mark.parametrize(("mode", "code"), [("revoked", "403"), ("denied", "403"), ("full", "507")])
def test_a_store_that_refuses_a_head_goes_on_with_its_connection(sandbox: Sandbox, mode: str, code: str) -> None:
    client = s3(sandbox.source)
    client.put_object(Bucket=sandbox.source.bucket, Key="kept", Body=b"x")
    sandbox.server_faults(sandbox.source.name, "s3", mode, method="HEAD", count=1)
    with pytest.raises(ClientError) as refused:
        client.head_object(Bucket=sandbox.source.bucket, Key="kept")
    assert refused.value.response["Error"]["Code"] == code
    assert client.head_object(Bucket=sandbox.source.bucket, Key="kept")["ContentLength"] == 1


def test_lakefs_that_hangs_answers_nobody_until_it_is_healed(sandbox: Sandbox, lakefs: LakeFS) -> None:
    sandbox.server_faults(sandbox.source.name, "lakefs", "hang")
    with pytest.raises(requests.Timeout):
        requests.get(f"{sandbox.source.lakefs_url}/api/v1/repositories", timeout=0.3)
    sandbox.server_faults(sandbox.source.name, "lakefs", "ok")
    assert lakefs.call("GET", "/repositories")


def test_services_that_refuse_drop_the_connection(sandbox: Sandbox) -> None:
    sandbox.server_faults("", "", "refuse")
    for region in sandbox.layout.regions:
        with pytest.raises(requests.ConnectionError):
            requests.get(f"{region.lakefs_url}/api/v1/repositories", timeout=5)
        with pytest.raises(BotoCoreError):
            s3(region).list_buckets()


def test_a_slow_service_gives_the_right_answer_late(sandbox: Sandbox, lakefs: LakeFS) -> None:
    sandbox.server_faults(sandbox.source.name, "lakefs", "slow", seconds=0.3, count=1)
    began = time.monotonic()
    assert lakefs.call("GET", "/repositories")
    assert time.monotonic() - began >= 0.3


def test_without_its_store_lakefs_cannot_write(sandbox: Sandbox, lakefs: LakeFS, repo: str) -> None:
    sandbox.server_faults(sandbox.source.name, "s3", "error")
    with pytest.raises(LakeFSError) as refused:
        lakefs.upload(repo, "main", "a", b"x")
    assert refused.value.status == 500
    sandbox.server_faults(sandbox.source.name, "s3", "ok")
    lakefs.upload(repo, "main", "a", b"x")


def test_reading_a_commit_whose_files_are_on_their_way_is_410(sandbox: Sandbox, lakefs: LakeFS, repo: str) -> None:
    sandbox.hold(f"{repo}/*")
    lakefs.upload(repo, "main", "a", b"x")
    lakefs.commit(repo, "main", "one", {})
    mirror = LakeFS(sandbox.destination.lakefs_url)
    made = {"name": repo, "storage_namespace": f"s3://{sandbox.destination.bucket}/{repo}", "read_only": True}
    mirror.call("POST", "/repositories?bare=true", json=made | {"default_branch": "main"})
    for record in lakefs.log(repo, "main"):
        mirror.copy_record(repo, record, force=True)
    head = lakefs.head(repo, "main")
    mirror.call("POST", f"/repositories/{repo}/branches", json={"name": "main", "source": head, "force": True})
    with pytest.raises(LakeFSError) as early:
        mirror.listing(repo, "main")
    assert (early.value.status, early.value.message) == (410, "No data")
    sandbox.release()
    assert sandbox.wait_replicated()
    assert [item["path"] for item in mirror.listing(repo, "main")] == ["a"]


def test_boto3_with_its_default_checksums_reads_back_what_it_wrote(sandbox: Sandbox) -> None:
    client = boto3.client(
        "s3",
        endpoint_url=sandbox.source.s3_url,
        region_name="us-east-1",
        aws_access_key_id=Sandbox.access_key_id,
        aws_secret_access_key=Sandbox.secret_access_key,
        config=Config(request_checksum_calculation="when_supported"),
    )
    for size in (0, 1, 100_000):
        client.put_object(Bucket=sandbox.source.bucket, Key="checked", Body=b"z" * size)
        assert client.get_object(Bucket=sandbox.source.bucket, Key="checked")["Body"].read() == b"z" * size


def test_the_quick_listing_says_what_motos_own_says(sandbox: Sandbox) -> None:
    client, bucket = s3(sandbox.source), sandbox.source.bucket
    for key in ("plain", "a b+c%2F#?ü/é", "<&>\"'", "dir/x", "dir/y"):
        client.put_object(Bucket=bucket, Key=f"both/{key}", Body=key.encode())
    for options in ({}, {"Delimiter": "/"}, {"MaxKeys": 2}, {"StartAfter": "both/dir/x"}, {"MaxKeys": 0}):
        quick, own = (
            client.list_objects_v2(Bucket=bucket, Prefix="both/", **options, **more)
            for more in ({}, {"FetchOwner": True})
        )
        for item in own.get("Contents", []):
            del item["Owner"]
        for answer in (quick, own):
            del answer["ResponseMetadata"]
        assert quick == own, options


def test_a_buckets_policy_refuses_writes_below_a_place_until_it_is_allowed(sandbox: Sandbox) -> None:
    client, bucket = s3(sandbox.source), sandbox.source.bucket
    sandbox.deny(f"{bucket}/closed")
    client.put_object(Bucket=bucket, Key="open", Body=b"")
    with pytest.raises(ClientError, match="403"):
        client.put_object(Bucket=bucket, Key="closed/one", Body=b"")
    sandbox.allow(bucket)
    client.put_object(Bucket=bucket, Key="closed/one", Body=b"")
    with pytest.raises(SandboxError, match="no region has a bucket elsewhere"):
        sandbox.allow("elsewhere")


@pytest.fixture
def far(sandbox: Sandbox) -> str:
    """The key of an object that only the source has."""
    key = f"far/{time.monotonic_ns()} a+b%20é"
    sandbox.hold("far/*")
    s3(sandbox.source).put_object(Bucket=sandbox.source.bucket, Key=key, Body=b"far away", Metadata={"of": "me"})
    assert sandbox.wait_replicated()
    return key


def ask(sandbox: Sandbox, key: str, **headers: str) -> list[int]:
    """The status of a HEAD and a GET at the destination."""
    client, found = s3(sandbox.destination), list[int]()
    client.meta.events.register("before-call.s3", lambda params, **_: params["headers"].update(headers))
    for call in (client.head_object, client.get_object):
        try:
            found.append(call(Bucket=sandbox.destination.bucket, Key=key)["ResponseMetadata"]["HTTPStatusCode"])
        except ClientError as error:
            found.append(error.response["ResponseMetadata"]["HTTPStatusCode"])
    return found


def test_a_store_may_answer_for_what_only_another_region_has(sandbox: Sandbox, far: str) -> None:
    eu, bucket = s3(sandbox.destination), sandbox.destination.bucket
    assert ask(sandbox, far) == [404, 404]
    sandbox.server_faults(sandbox.destination.name, "s3", "proxy")
    found = eu.get_object(Bucket=bucket, Key=far)
    assert (found["Body"].read(), found["Metadata"], found["ContentLength"]) == (b"far away", {"of": "me"}, 8)
    assert eu.get_object(Bucket=bucket, Key=far, Range="bytes=0-2")["Body"].read() == b"far"
    assert ask(sandbox, far) == [200, 200]
    for value in ("false", "true"):
        assert ask(sandbox, far, **{"X-Minio-Source-Proxy-Request": value}) == [404, 404]
    assert ask(sandbox, "far/nobody") == [404, 404]
    assert far not in [one["Key"] for one in eu.list_objects_v2(Bucket=bucket).get("Contents", [])]
    with pytest.raises(ClientError, match="NoSuchKey"):
        eu.copy_object(Bucket=bucket, Key="copied", CopySource={"Bucket": bucket, "Key": far})
    sandbox.server_faults(sandbox.destination.name, "s3", "ok")
    assert ask(sandbox, far) == [404, 404]


def test_such_a_store_has_nothing_to_say_once_the_other_one_is_away(sandbox: Sandbox, far: str) -> None:
    sandbox.server_faults(sandbox.destination.name, "s3", "proxy")
    sandbox.server_faults(sandbox.source.name, "s3", "proxy")
    assert ask(sandbox, "far/nobody") == [404, 404], "they don't ask each other for ever"
    for mode in ("refuse", "error", "denied"):
        sandbox.server_faults(sandbox.source.name, "s3", mode)
        assert ask(sandbox, far) == [404, 404]
        sandbox.server_faults(sandbox.source.name, "s3", "ok")
        assert ask(sandbox, far) == [200, 200]


def test_a_store_that_answers_for_another_fails_as_it_is_told(sandbox: Sandbox, far: str) -> None:
    for mode in ("proxy", "denied"):
        sandbox.server_faults(sandbox.destination.name, "s3", mode)
    assert ask(sandbox, far) == [403, 403]
