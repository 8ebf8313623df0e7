"""LakeMirror on the sandbox: real adapters, real Spark, real tables; the duties run in the test's own process.

With LAKEMIRROR_SANDBOX_LAKEFS the same tests run on real lakeFS servers.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from django.db.models.functions import Now

from core.installations.webhook_action import SECRET_VARIABLE
from deployment import config
from deployment.wiring import clients
from jobs import duties
from jobs.models import Duty
from mirrors.models import Blocker, MirrorDuty
from mirrors.queries.metaranges import remembered
from mirrors.services import mirrors
from rbac.models import User
from sandbox.bundle import Stored
from sandbox.client import Sandbox
from sandbox.fixture import running_sandbox
from sandbox.journal import DELETE
from sandbox.lakefs_http import LakeFS, LakeFSError
from sandbox.lakemirror_yaml import write_configuration
from sandbox.layout import Region
from sandbox.side_door import SideDoor
from tests.spark.server import ConnectServer

_numbers = itertools.count(1)


class World:
    """A source repository, its mirror, and the loops that bring the one to the other."""

    def __init__(self, sandbox: Sandbox, actor: User, **settings: Any) -> None:
        """`settings` are those of the mirror."""
        number = next(_numbers)
        self.sandbox = sandbox
        self.source = LakeFS(sandbox.source.lakefs_url)
        self.destination = LakeFS(sandbox.destination.lakefs_url)
        self.repo, self.mirror_name = f"lake-{number}", f"lake-{number}-eu"
        self.source.create_repository(self.repo, f"s3://{sandbox.source.bucket}/{self.repo}")
        self.mirror = mirrors.mirror_create(
            actor=actor,
            source_repository=self.repo,
            name=self.mirror_name,
            region=sandbox.destination.name,
            storage_namespace=f"s3://{sandbox.destination.bucket}/{self.repo}",
            settings=settings,
        )

    def commit(self, files: dict[str, bytes], branch: str = "main") -> str:
        """Upload files and commit them at the source."""
        for path, body in files.items():
            self.source.upload(self.repo, branch, path, body)
        return self.source.commit(self.repo, branch, f"{len(files)} files", {})

    def work(self) -> None:
        """One round of all duties, due or not."""
        Blocker.objects.update(look_at=Now())
        for kind in MirrorDuty.values:
            for duty in Duty.objects.filter(kind=kind):
                Duty.objects.filter(pk=duty.pk).update(due_at=Now())
                duties.run(duty.pk, holder="e2e")

    def work_until(self, met: Callable[[], bool], seconds: float = 90.0) -> None:
        """Rounds of work until a condition holds."""
        deadline = time.monotonic() + seconds
        while not met():
            told = list(Duty.objects.values_list("kind", "outcome"))
            assert time.monotonic() < deadline, told
            self.work()

    def head(self, branch: str = "main") -> str:
        """What the mirror's branch points at, as its lakeFS says; "" if there is none."""
        try:
            return self.destination.branches(self.mirror_name).get(branch, "")
        except LakeFSError:
            return ""

    def read(self, branch: str = "main") -> dict[str, bytes]:
        """Every object of the mirror's branch, read through its lakeFS."""
        listed = self.destination.listing(self.mirror_name, branch)
        return {one["path"]: self._object(branch, one["path"]) for one in listed}

    def _object(self, branch: str, path: str) -> bytes:
        found = self.destination.call(
            "GET", f"/repositories/{self.mirror_name}/refs/{branch}/objects", params={"path": path}
        )
        return str(found or "").encode()

    # Objects, past lakeFS and the replication

    def key_of(self, path: str) -> str:
        """The key of an object's bytes on main, which is the same in both regions."""
        where = f"/repositories/{self.repo}/refs/main/objects/stat"
        found = self.source.call("GET", where, params={"path": path})
        return str(found["physical_address"]).split("/", 3)[3]

    def take_away(self, region: Region, key: str) -> Stored:
        """Somebody deletes an object from a region's bucket; gives what it was."""
        door = SideDoor(region.s3_url)
        was = door.read([(region.bucket, key)])[0]
        door.write([Stored(region.bucket, key, op=DELETE)], journal=False)
        return was

    def put(self, region: Region, stored: Stored) -> None:
        """Somebody writes an object into a region's bucket."""
        SideDoor(region.s3_url).write([stored], journal=False)

    def link(self, path: str, address: str, **of: Any) -> str:
        """Commit an entry for bytes that lie somewhere already, at the source; `of` is as the API names it."""
        where = f"/repositories/{self.repo}/branches/main/objects"
        self.source.call("PUT", where, params={"path": path}, json={"physical_address": address, **of})
        return self.source.commit(self.repo, "main", f"link {path}", {})

    def blocker(self) -> Blocker:
        """The one thing that stands in the way."""
        return Blocker.objects.get(mirror=self.mirror)


HOOK_SECRET = "what the webhooks of these tests say"


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """With the webhooks' secret in the environment of each lakeFS, which fills it into action files."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(SECRET_VARIABLE, HOOK_SECRET)
        with running_sandbox(tmp_path_factory.mktemp("e2e")) as running:
            yield running


@pytest.fixture
def configured(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """This process, configured for the sandbox by a file; nothing of it stays behind."""
    file = write_configuration(tmp_path, sandbox.layout, hook_secret=HOOK_SECRET)
    monkeypatch.setenv("LAKEMIRROR_CONFIG", str(file))
    forget()
    with mock.patch("jobs.duties.async_task"):
        yield file
    sandbox.heal()
    monkeypatch.undo()
    forget()


@pytest.fixture
def deployment(configured: Path, spark_server: ConnectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with Spark."""
    monkeypatch.setenv("SPARK_REMOTE", spark_server.url)
    monkeypatch.setattr(clients, "local_cache", LOCAL_CACHE)


LOCAL_CACHE = clients.local_cache
"""The real one, whatever stands in for it in other tests of this process."""


def forget() -> None:
    """The configuration and what was made from it is read anew."""
    config.from_file.cache_clear()
    LOCAL_CACHE.cache_clear()
    remembered.cache_clear()


@pytest.fixture
def world(deployment: None, sandbox: Sandbox, transactional_db: None, owner: User) -> World:
    return World(sandbox, owner)


@pytest.fixture
def caught_up(world: World) -> World:
    """A mirror at its first commit of two files."""
    first = world.commit({"a.csv": b"one", "dir/b.csv": b"two"})
    world.work_until(lambda: world.head() == first)
    return world
