"""Processes that are up before the tables: each says so once, and goes on once they are there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml
from launcher import kernel

from deployment import config
from tests.deployment.test_config import KEYS, changed
from tests.site.test_run import free_base

PROCESS = config.BASE_DIR / "deploy" / "process"
API = "/service/replication/v1/repositories/lake/mirrors"
WAITING = "lakemirror.tables: the tables are not there yet, or are an older version's: waiting for the migrations"


class Installation:
    """Processes on one database, which nobody has prepared."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = f"127.0.0.1:{free_base()}"
        file = folder / "lakemirror.yaml"
        file.write_text(yaml.safe_dump(changed("mirrors_database", {"type": "sqlite"}) | KEYS))
        others = ("LAKEMIRROR_", "REPLICATION_", "Q_CLUSTER")
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(others)} | {
            "LAKEMIRROR_CONFIG": str(file),
            "LAKEMIRROR_VAR": str(folder),
            "LAKEMIRROR_VENV": sys.prefix,
            "REPLICATION_LISTEN_ADDRESS": self.address,
            "DJANGO_SETTINGS_MODULE": "lakemirror_site.settings",
            "WEB_CONCURRENCY": "1",
        }
        self.started: dict[str, subprocess.Popen[Any]] = {}

    def start(self, role: str) -> None:
        """In a process group of its own, as process managers have it."""
        with (self.folder / role).open("w") as log:
            self.started[role] = subprocess.Popen(
                [PROCESS, role], env=self.env, stdout=log, stderr=log, start_new_session=True
            )

    def said(self, role: str) -> list[str]:
        """The lines of its log, without times."""
        return [line.split(" ", 2)[-1] for line in (self.folder / role).read_text().splitlines()]

    def get(self, path: str, **how: Any) -> requests.Response | None:
        """What the web process answers a program; None while nobody listens."""
        try:
            return requests.get(f"http://{self.address}{path}", timeout=10, **how)
        except requests.ConnectionError:
            return None

    def stop(self) -> None:
        """All that are left."""
        for process in self.started.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    made = Installation(tmp_path)
    yield made
    made.stop()


def until(condition: Callable[[], object], seconds: float = 90) -> None:
    """Wait until it is so; fail after that many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.05)


def test_processes_wait_for_the_tables_and_go_on(installation: Installation) -> None:
    for role in ("web", "controller", "worker"):
        installation.start(role)
    until(lambda: installation.get("/healthz"))
    until(lambda: all(WAITING in installation.said(role) for role in ("controller", "worker")))

    answer = installation.get(API, auth=("AKIA", "secret"))
    assert answer is not None and (answer.status_code, answer.headers["Retry-After"]) == (503, "3")

    assert subprocess.run([PROCESS, "prepare"], env=installation.env, capture_output=True).returncode == 0
    until(lambda: (answer := installation.get(API)) is not None and answer.status_code == 401)
    going_on = [WAITING, "lakemirror.tables: the tables are there"]
    until(lambda: "lakemirror.controller: the clock is running" in installation.said("controller"))
    worker = installation.started["worker"]
    until(lambda: len(kernel.descendants(worker.pid)) > 3)
    assert installation.said("worker") == going_on
    assert installation.said("controller")[:3] == [*going_on, "lakemirror.controller: the clock is running"]
    assert installation.said("web")[:2] == going_on
    told_twice_everybody_at_once(worker)


def told_twice_everybody_at_once(worker: subprocess.Popen[Any]) -> None:
    """As `timeout` does it: the process gets SIGTERM, then its whole group."""
    below = kernel.descendants(worker.pid)
    worker.send_signal(signal.SIGTERM)
    os.killpg(worker.pid, signal.SIGTERM)
    assert worker.wait(30) == 0
    until(lambda: not [pid for pid in below if Path(f"/proc/{pid}").exists()])
