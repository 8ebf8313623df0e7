"""Hooks run at the source, and not once more at its mirrors: neither webhooks nor any other kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from core.installations.webhook_action import EVENTS, lakefs_action
from core.mirroring.branch_selection import OnUnselect
from mirrors.models import Mirror
from mirrors.services.settings import mirror_update
from rbac.models import User
from sandbox.lakefs_http import LakeFS
from tests.e2e.conftest import World
from tests.sandbox.listener import Listener, listening

ACTION_FILE = "_lakefs_actions/all.yaml"
BEFORE = [event.replace("post-", "pre-") for event in EVENTS]


@pytest.fixture
def listener() -> Iterator[Listener]:
    with listening() as made:
        yield made


def action(listener: Listener) -> bytes:
    """A file by which a repository tells of everything that happens to it, before and after."""
    told = lakefs_action(listener.url, "whoever")
    return yaml.safe_dump(told | {"on": dict.fromkeys([*BEFORE, *EVENTS])}).encode()


def runs(lakefs: LakeFS, repository: str) -> list[Any]:
    """What a real lakeFS has noted of the hooks that it ran, of whatever kind."""
    found: list[Any] = lakefs.call("GET", f"/repositories/{repository}/actions/runs")["results"]
    return found


def live(lakefs: LakeFS, repository: str) -> None:
    """Branches that begin, move, are merged and end, in a repository that people write to."""
    lakefs.create_branch(repository, "dev", "main")
    lakefs.upload(repository, "dev", "d.csv", b"d")
    lakefs.commit(repository, "dev", "d", {})
    lakefs.merge(repository, "dev", "main", "m", {})


def test_they_run_at_the_source_alone(world: World, owner: User, listener: Listener) -> None:
    """The mirror's branches begin, move and end, and so do its tags, with the action file in every commit."""
    file = action(listener)
    mirror_update(actor=owner, mirror=world.mirror, changes={"tags": True})
    first = world.commit({ACTION_FILE: file, "a.csv": b"a"})
    world.work_until(lambda: world.head() == first)
    live(world.source, world.repo)
    world.source.call("POST", f"/repositories/{world.repo}/tags", json={"id": "v1", "ref": "main"})
    wanted = world.source.branches(world.repo)
    world.work_until(lambda: world.destination.branches(world.mirror_name) == wanted)
    second = world.commit({"e.csv": b"e"}, "dev")
    world.work_until(lambda: world.head("dev") == second)
    tags = f"/repositories/{world.mirror_name}/tags"
    world.work_until(lambda: bool(world.destination.call("GET", tags)["results"]))
    mirror_update(
        actor=owner,
        mirror=Mirror.objects.get(),
        changes={"selected": {"include": ["*"], "exclude": ["dev"]}},
        on_unselect=OnUnselect.DELETE,
    )
    world.work_until(lambda: world.head("dev") == "")
    assert world.read()[ACTION_FILE] == file, "the mirror has the file"

    # A repository beside it shows that hooks do run there, and that whoever was called before has been heard.
    beside = f"{world.repo}-beside"
    world.destination.create_repository(beside, f"s3://{world.sandbox.destination.bucket}/{beside}")
    world.destination.upload(beside, "main", ACTION_FILE, file)
    world.destination.commit(beside, "main", "hooks", {})
    live(world.destination, beside)
    for lakefs, repository in ((world.source, world.repo), (world.destination, beside)):
        lakefs.delete_branch(repository, "dev")
        listener.first("post-delete-branch", "dev", repository)
        for event in ("post-create-branch", "post-commit"):
            listener.first(event, "dev", repository)
        listener.first("post-merge", "main", repository)
    assert {body["repository_id"] for _, body in listener.heard} == {world.repo, beside}
    if world.sandbox.layout.real_lakefs:
        assert runs(world.source, world.repo) and runs(world.destination, beside)
        assert runs(world.destination, world.mirror_name) == []
