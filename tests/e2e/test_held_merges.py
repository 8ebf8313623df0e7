"""A merge at the source waits for its mirror, by lakeFS's own hook: the stand-in's, or a real lakeFS's."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from unittest import mock

import pytest
import yaml
from django.test import Client

from core.installations.webhook_action import HOLD_FILE, hold_action
from deployment import config
from mirrors.models import HeldMerge, Mirror
from mirrors.services.holds import hold
from mirrors.services.settings import mirror_update
from rbac.models import User
from sandbox.lakefs_http import LakeFSError
from tests.e2e.conftest import World


class Door:
    """LakeMirror's address, as lakeFS sees it: the requests are carried out by the test, which does the workers' work
    too. `down`: nobody listens."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str], bytes, list[Any]]] = []
        self.answers: list[int] = []
        door = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                told: list[Any] = []
                door.asked.append((self.path, dict(self.headers), body, told))
                while not told:
                    time.sleep(0.01)
                status, content = told[0]
                try:
                    self.send_response(status)
                    self.end_headers()
                    self.wfile.write(content)
                except OSError:
                    pass

            def log_message(self, *_: object) -> None:
                """The test tells."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self) -> bool:
        """Carry out what was asked, if anything was."""
        if not self.asked:
            return False
        path, headers, body, told = self.asked.pop(0)
        sent = {"Authorization": headers.get("Authorization", "")}
        answer = Client().post(path, body, content_type="application/json", headers=sent)
        self.answers.append(answer.status_code)
        told.append((answer.status_code, answer.content))
        return True


@pytest.fixture
def door() -> Iterator[Door]:
    made = Door()
    yield made
    made.server.shutdown()


def in_the_background(call: Callable[[], object]) -> list[Any]:
    """What a call gives, or raises, once it has."""
    ended: list[Any] = []

    def run() -> None:
        try:
            ended.append(call())
        except Exception as error:
            ended.append(error)

    threading.Thread(target=run, daemon=True).start()
    return ended


def test_a_merge_is_held_refused_released_and_told(world: World, owner: User, door: Door) -> None:
    secret = str(config.current().hook_secret(world.sandbox.source.name))
    url = f"{door.url}/hooks/hold/{world.sandbox.source.name}"
    file = yaml.safe_dump(hold_action(url, secret, branches=["main"], copies=1, timeout=60)).encode()
    first = world.commit({"a.csv": b"a"})
    world.source.create_branch(world.repo, "dev", "main")
    world.work_until(lambda: world.head() == first)
    policy = {"branches": "main", "copies": 1, "hold_seconds": 40, "when_late": "refuse"}
    mirror_update(actor=owner, mirror=world.mirror, changes={"hold": [policy]})
    world.work()
    world.commit({"b.csv": b"b", HOLD_FILE: file}, "dev")

    def merge() -> str:
        return world.source.merge(world.repo, "dev", "main", "m", {})

    def serve_until(ended: list[Any], seconds: float = 90.0) -> Any:
        deadline = time.monotonic() + seconds
        while not ended:
            assert time.monotonic() < deadline
            door.answer() or time.sleep(0.02)
        return ended[0]

    # The workers are dead: nothing is proven, the branch stays, and lakeFS says what it says of a refusal.
    with mock.patch.object(hold, "seconds_to_hold", return_value=1), mock.patch.object(hold, "rest", time.sleep):
        refused = serve_until(in_the_background(merge))
    assert isinstance(refused, LakeFSError) and refused.status == 412, refused
    assert "pre-merge hook aborted" in str(refused) and "status code: 503" in str(refused)
    assert "lakemirror-hold-see-hook-output" in str(refused)
    assert world.source.branches(world.repo)["main"] == first

    # They work: it is released once the mirror has it, and the mirror shows it once the branch is there.
    began = time.monotonic()
    with mock.patch.object(hold, "rest", lambda seconds: world.work()):
        merged = serve_until(in_the_background(merge))
    assert isinstance(merged, str), merged
    row = HeldMerge.objects.latest("pk")
    assert (row.state, row.commit_id, row.complete_in) == ("released", merged, [world.sandbox.destination.name])
    print(f"held for {time.monotonic() - began:.2f} s with the checks in this process; answers {door.answers}")
    assert world.head() == first
    world.work_until(lambda: world.head() == merged)
    assert HeldMerge.objects.get(pk=row.pk).seen_at is not None

    # LakeMirror is down: nobody is asked, nothing moves.
    world.commit({"c.csv": b"c"}, "dev")
    door.server.shutdown()
    door.server.server_close()
    down = serve_until(in_the_background(merge))
    assert isinstance(down, LakeFSError) and down.status == 412, down
    assert world.source.branches(world.repo)["main"] == merged

    # A branch without the file is not asked at all; its head is told.
    world.source.create_branch(world.repo, "bare", first)
    world.commit({"d.csv": b"d"}, "bare")
    ungated = world.source.merge(world.repo, "bare", "main", "bare", {})
    world.work_until(lambda: world.head() == ungated)
    assert HeldMerge.objects.get(state="ungated").commit_id == ungated
    assert Mirror.objects.get().hold == [policy]
