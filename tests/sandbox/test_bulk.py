"""Many objects in one commit."""

from __future__ import annotations

from sandbox.client import Sandbox
from sandbox.lakefs_http import LakeFS
from tests.sandbox.conftest import s3

COUNT = 3000


def count(sandbox: Sandbox, region_name: str, prefix: str) -> int:
    region = sandbox.region(region_name)
    pages = s3(region).get_paginator("list_objects_v2").paginate(Bucket=region.bucket, Prefix=prefix)
    return sum(len(page.get("Contents", [])) for page in pages)


def test_many_objects_come_in_one_commit_on_top_of_the_branch(sandbox: Sandbox, lakefs: LakeFS, repo: str) -> None:
    lakefs.upload(repo, "main", "before", b"x")
    lakefs.commit(repo, "main", "before", {})
    made = sandbox.bulk_import(sandbox.source.name, repo, "main", COUNT)
    assert lakefs.head(repo, "main") == made
    first = lakefs.listing(repo, "main", "bulk/", amount=1)[0]
    path = f"/repositories/{repo}/refs/main/objects"
    assert len(lakefs.call("GET", path, params={"path": first["path"]})) == first["size_bytes"] == 16
    assert lakefs.listing(repo, "main", "bulk/0002/", amount=1000)[-1]["path"] == "bulk/0002/00002999.bin"
    assert lakefs.listing(repo, "main", "before")
    assert sandbox.wait_replicated()
    for region in sandbox.layout.regions:
        assert count(sandbox, region.name, f"{repo}/data/") == COUNT + 1


def test_objects_may_be_in_both_regions_at_once(sandbox: Sandbox, lakefs: LakeFS, repo: str) -> None:
    sandbox.wait_replicated()
    sandbox.stop()
    sandbox.bulk_import(sandbox.source.name, repo, "main", 500, replicated=True)
    assert count(sandbox, sandbox.destination.name, f"{repo}/data/") == 500
    assert count(sandbox, sandbox.destination.name, f"{repo}/_lakefs/") == 1  # the probe file of a new repository
    sandbox.start()
    assert sandbox.wait_replicated()
    assert count(sandbox, sandbox.destination.name, f"{repo}/_lakefs/") == 3
