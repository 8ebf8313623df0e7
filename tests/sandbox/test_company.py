"""The company works on any lakeFS, tells LakeMirror of each commit, and repeats itself with the same seed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.client import Sandbox
from sandbox.company import HISTORY_COMMITS, Company
from sandbox.fixture import running_sandbox
from sandbox.lakefs_http import LakeFS
from sandbox.layout import Region
from tests.sandbox.conftest import s3
from tests.sandbox.listener import Listener, listening
from tests.sandbox.recorded import transcript


@pytest.fixture
def listener() -> Iterator[Listener]:
    with listening() as made:
        yield made


def keys(region: Region, repository: str) -> list[str]:
    listed = s3(region).list_objects_v2(Bucket=region.bucket, Prefix=f"{repository}/")
    return [item["Key"] for item in listed["Contents"]]


def test_the_demo_begins_with_two_histories_that_reach_all_other_regions(tmp_path: Path) -> None:
    with running_sandbox(tmp_path, regions=3, history=True, lakefs="") as sandbox:
        source = LakeFS(sandbox.source.lakefs_url)
        commits = source.log("lake", "main")
        assert len(commits) >= HISTORY_COMMITS
        assert len(source.listing("lake", "main")) >= 150
        assert {commit["metadata"]["author"] for commit in commits[:-1]} >= {"amara", "bo"}
        assert sandbox.wait_replicated()
        for home, repository in ((sandbox.source, "lake"), (sandbox.destination, "orders")):
            assert len(LakeFS(home.lakefs_url).log(repository, "main")) >= 6
            written = keys(home, repository)
            for region in sandbox.layout.regions:
                assert keys(region, repository) == written
        assert len(sandbox.company_step(20)) == 20
        for branch in source.branches("lake"):
            assert source.listing("lake", branch)


def test_each_event_is_told_as_real_lakefs_tells_it(sandbox: Sandbox, lakefs: LakeFS, listener: Listener) -> None:
    company = Company(lambda: LakeFS(sandbox.source.lakefs_url), "hooked", seed=3)
    company.found(f"s3://{sandbox.source.bucket}/hooked", hook_url=listener.url, hook_secret="s3cr3t")
    lakefs.create_branch("hooked", "side", "main")
    lakefs.upload("hooked", "side", "a", b"x")
    lakefs.commit("hooked", "side", "c", {})
    lakefs.merge("hooked", "side", "main", "m", {})
    lakefs.delete_branch("hooked", "side")
    recorded = {
        (item["body"]["event_type"], item["body"]["branch_id"]): item["body"] for item in transcript("webhooks")
    }
    for (kind, branch), expected in recorded.items():
        mine = listener.first(kind, "side" if branch == "hooked" else branch)
        assert set(mine) - {"commit_metadata"} == set(expected) - {"commit_metadata"}
        assert mine["repository_id"] == "hooked"
    assert listener.first("post-create-branch", "side")["source_ref"] == "main"
    assert (
        listener.first("post-delete-branch", "side")["source_ref"] == listener.first("post-commit", "side")["commit_id"]
    )
    assert {auth for auth, _ in listener.heard} == {"Bearer s3cr3t"}


def test_a_read_only_repository_tells_nobody(sandbox: Sandbox, lakefs: LakeFS, listener: Listener) -> None:
    made = {"name": "silent", "storage_namespace": f"s3://{sandbox.source.bucket}/silent", "read_only": True}
    lakefs.call("POST", "/repositories", json=made)
    action = (
        f"name: n\non: {{post-commit: null}}\nhooks: [{{id: h, type: webhook, properties: {{url: '{listener.url}'}}}}]"
    )
    where = "/repositories/silent/branches/main"
    path = {"path": "_lakefs_actions/n.yaml", "force": "true"}
    lakefs.call("POST", f"{where}/objects", params=path, data=action.encode())
    lakefs.call("POST", f"{where}/commits", json={"message": "forced", "force": True})
    time.sleep(0.3)
    assert listener.heard == []


def test_the_same_seed_does_the_same_things(sandbox: Sandbox) -> None:
    deeds = []
    for name in ("twin-1", "twin-2"):
        company = Company(lambda: LakeFS(sandbox.source.lakefs_url), name, seed=11)
        company.found(f"s3://{sandbox.source.bucket}/{name}")
        deeds.append([company.step() for _ in range(25)])
    assert deeds[0] == deeds[1]
    assert any("rewrote history" in deed or "deleted" in deed for deed in deeds[0])


def test_the_company_carries_on_after_the_server_failed(sandbox: Sandbox) -> None:
    company = Company(lambda: LakeFS(sandbox.source.lakefs_url), "patient", seed=5)
    company.found(f"s3://{sandbox.source.bucket}/patient")
    sandbox.server_faults(sandbox.source.name, "lakefs", "error")
    assert company.try_step() == ""
    sandbox.server_faults(sandbox.source.name, "lakefs", "ok")
    assert company.try_step()
