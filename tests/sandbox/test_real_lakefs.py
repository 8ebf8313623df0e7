"""The sandbox and real lakeFS servers, side by side. Runs where LAKEMIRROR_SANDBOX_LAKEFS names a lakeFS binary."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox import processes, real_lakefs
from sandbox.client import Sandbox
from sandbox.fixture import running_sandbox
from sandbox.httpd import bind
from sandbox.lakefs_http import LakeFS
from sandbox.layout import Region
from tests.sandbox.recorded import shape
from tests.sandbox.steps import all_steps

BINARY = real_lakefs.binary()
pytestmark = pytest.mark.skipif(not BINARY, reason="LAKEMIRROR_SANDBOX_LAKEFS names no lakeFS binary")
BULK = 30_000


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    with running_sandbox(tmp_path_factory.mktemp("stand-in"), lakefs="", history=True) as running:
        yield running


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    with running_sandbox(tmp_path_factory.mktemp("real"), lakefs=BINARY) as running:
        yield running


@pytest.fixture
def real_in_the_west(stand_in: Sandbox, tmp_path: Path) -> Iterator[LakeFS]:
    """A real server over the store of the stand-in's destination region."""
    listener = bind(0)
    port = listener.getsockname()[1]
    listener.close()
    west: Region = stand_in.destination
    server = real_lakefs.start_lakefs(BINARY, tmp_path / "lakefs", west, port)
    try:
        url = f"http://127.0.0.1:{port}"
        real_lakefs.wait_until_alive(server, url, tmp_path / "lakefs" / "lakefs.log")
        yield LakeFS(url)
    finally:
        processes.end([server.pid])


def everything(lakefs: LakeFS, ref: str) -> list[dict[str, Any]]:
    """All objects of a reference, page by page, without what differs between the regions."""
    found: list[dict[str, Any]] = []
    after, more = "", True
    while more:
        params = {"after": after, "amount": 1000}
        page = lakefs.call("GET", f"/repositories/lake/refs/{ref}/objects/ls", params=params)
        found += page["results"]
        after, more = page["pagination"]["next_offset"], page["pagination"]["has_more"]
    return [{key: value for key, value in item.items() if key != "physical_address"} for item in found]


def test_a_real_lakefs_reads_what_the_sandbox_wrote(stand_in: Sandbox, real_in_the_west: LakeFS) -> None:
    """Metadata files, entries and commit records of our writer, opened as a bare repository."""
    stand_in.company_step(15)
    stand_in.bulk_import(stand_in.source.name, "lake", "main", BULK)  # ranges with a two-level index
    stand_in.company_step(5)
    assert stand_in.wait_replicated(300)
    ours = LakeFS(stand_in.source.lakefs_url)
    made = {"name": "lake", "storage_namespace": f"s3://{stand_in.destination.bucket}/lake", "read_only": True}
    real_in_the_west.call("POST", "/repositories?bare=true", json=made | {"default_branch": "main"})
    heads = ours.branches("lake")
    for record in {c["id"]: c for branch in heads for c in ours.log("lake", branch, 1000)}.values():
        real_in_the_west.copy_record("lake", record, force=True)
    for branch, head in heads.items():
        body = {"name": branch, "source": head, "force": True}
        real_in_the_west.call("POST", "/repositories/lake/branches", json=body)
    assert len(everything(ours, "main")) > BULK
    for branch in heads:
        assert everything(real_in_the_west, branch) == everything(ours, branch)
        for item in everything(ours, branch)[:: 1 + BULK // 20]:
            path, params = f"/repositories/lake/refs/{branch}/objects", {"path": item["path"]}
            assert real_in_the_west.call("GET", path, params=params) == ours.call("GET", path, params=params)


def test_the_stand_in_answers_step_by_step_like_a_real_lakefs(stand_in: Sandbox, real: Sandbox) -> None:
    """Some 120 requests, good and bad: the same status, shape and, for short messages, words."""
    told = [dict(all_steps(Session(box))) for box in (stand_in, real)]
    differing = {step: (mine, told[1][step]) for step, mine in told[0].items() if mine != told[1][step]}
    assert differing == {}
    assert len(told[0]) > 120


class Session:
    """Sends a request to a sandbox's source and describes the answer."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.namespace = f"s3://{sandbox.source.bucket}/steps-{os.getpid()}"
        self._lakefs = LakeFS(sandbox.source.lakefs_url)

    def send(self, method: str, path: str, **options: Any) -> tuple[tuple[int, Any], Any]:
        """(status and shape or message) and the body."""
        url = self._lakefs._base + path
        answer = self._lakefs._session.request(method, url, timeout=30, **options)
        is_json = answer.headers.get("Content-Type", "").startswith("application/json")
        body = answer.json() if is_json else answer.text
        return (answer.status_code, self._told(answer.status_code, body)), body

    def _told(self, status: int, body: Any) -> Any:
        if status < 400 or not isinstance(body, dict) or set(body) != {"message"}:
            return shape(body)
        message: str = body["message"]
        return message.partition("\nSchema:")[0].partition(": Error at")[0].partition("failed to decode")[0]
