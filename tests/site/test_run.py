"""`scripts/run` as a newcomer uses it: from the first line to the last process."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import requests
from launcher import kernel, ports
from launcher.console import Problem

from deployment.config import BASE_DIR

RUN = str(BASE_DIR / "scripts" / "run")
PORTS = (8, 100, 101, 102, 103, 111, 112, 113, 120)


def free_base() -> int:
    """A port base of which every port is free, below those that the kernel gives to connections."""
    while True:
        base = random.randrange(10_000, 32_000, 200)
        try:
            ports.require_free({str(number): ("127.0.0.1", base + number) for number in PORTS})
        except Problem:
            continue
        return base


def environment(var: Path, base: int) -> dict[str, str]:
    """What a newcomer's shell has, with a folder and ports of this test's own."""
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("LAKEMIRROR_", "REPLICATION_", "DJANGO_", "SPARK_"))
    }
    return kept | {"LAKEMIRROR_VAR": str(var), "LAKEMIRROR_PORT_BASE": str(base)}


class Running:
    """A run, its lines as they come."""

    def __init__(self, var: Path, base: int) -> None:
        self.base = base
        self.lines: list[str] = []
        self._said = threading.Condition()
        self.process = subprocess.Popen(
            [RUN],
            env=environment(var, base),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._said:
                self.lines.append(line)
                self._said.notify_all()

    def line_with(self, words: str, *, after: int = 0, seconds: float = 240) -> str:
        """The first line with these words from line number `after` on, once it is there."""
        with self._said:
            found = self._said.wait_for(lambda: [line for line in self.lines[after:] if words in line], seconds)
        assert found, f"no line with {words!r}:\n{''.join(self.lines)}"
        return found[0]

    def stop(self) -> int:
        """Ctrl-C, as a terminal sends it: to the whole foreground group."""
        os.killpg(self.process.pid, signal.SIGINT)
        try:
            return self.process.wait(120)
        except subprocess.TimeoutExpired:
            left = "\n".join(f"{pid} {command}" for pid, command in pids_below(self.process.pid).items())
            pytest.fail(f"it did not stop; left:\n{left}\nit said:\n{''.join(self.lines[-40:])}")


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    made = Running(tmp_path / "var", free_base())
    yield made
    if made.process.poll() is None:
        os.killpg(made.process.pid, signal.SIGTERM)
        made.process.wait(60)


def pids_below(root: int) -> dict[int, str]:
    """Every process below one, with its command; without those that end meanwhile."""
    found: dict[int, str] = {}
    for pid in kernel.descendants(root):
        with suppress(FileNotFoundError, ProcessLookupError):
            found[pid] = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    return found


@pytest.mark.spark
def test_a_newcomer_sees_a_commit_promoted_a_dead_process_return_and_nothing_stay_behind(running: Running) -> None:
    page = running.line_with("the page answers after")
    assert f"http://127.0.0.1:{running.base + 8} - sign in as admin with the password" in page
    assert running.line_with("begins afresh")
    assert ports.answers(f"http://127.0.0.1:{running.base + 8}/readyz")
    for mirror in ("lake-eu", "lake-ap", "orders-us"):
        running.line_with(f"{mirror}: main is now at")
    so_far = len(running.lines)
    for mirror in ("lake-eu", "lake-ap", "orders-us"):  # all of them are live: each gets commits that came later
        running.line_with(f"lakemirror.promote: {mirror}: ", after=so_far)

    repaired_as_told(running, page)

    below = pids_below(running.process.pid)
    jvm = next(pid for pid, command in below.items() if "SparkConnectServer" in command and "/bin/java" in command)
    so_far = len(running.lines)
    os.kill(jvm, signal.SIGKILL)
    running.line_with("was killed by SIGKILL; starting it again", after=so_far)
    running.line_with("is now at", after=len(running.lines))

    everything = pids_below(running.process.pid)
    assert running.stop() == 0
    assert "everything has stopped" in running.lines[-1]
    assert not [command for pid, command in everything.items() if Path(f"/proc/{pid}").exists()]


def repaired_as_told(running: Running, page: str) -> None:
    """One export of the demo goes on; the other one has failed, and is repaired as the demo's own words say."""
    running.line_with("is exported to s3://company-bucket/latest")
    running.line_with("the export of orders/main (eu-west-1) failed: ")
    told = running.line_with("created export of orders/main")
    command = re.search(r"python -m (sandbox ctl allow .*); then click Repair", told)
    key = re.search(r"curl -u (\S+):(\S+)\)", page)
    assert command and key
    allowing = [sys.executable, "-m", *command[1].split()]
    subprocess.run(allowing, cwd=BASE_DIR, env=environment(Path(), running.base), check=True, timeout=60)
    repair = f"http://127.0.0.1:{running.base + 8}/api/v1/repositories/orders/branches/main/repair-export"
    assert requests.post(repair, params={"region": "eu-west-1"}, auth=(key[1], key[2]), timeout=60).status_code == 201
    running.line_with("is exported to s3://partner-bucket/orders")


def refused(var: Path, base: int, *arguments: str) -> str:
    """The one line with which a run refuses to start."""
    done = subprocess.run([RUN, *arguments], env=environment(var, base), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    base = free_base()
    with socket.create_server(("127.0.0.1", base + 101)):
        assert f"port {base + 101} (lakeFS us-east-1) can't be used" in refused(tmp_path, base)


def test_a_second_run_in_the_same_folder_is_one_line(tmp_path: Path) -> None:
    import fcntl

    (tmp_path / "run").mkdir()
    with (tmp_path / "run" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "runs from this folder already" in refused(tmp_path, free_base())


def test_a_wrong_configuration_is_one_line_that_names_the_field(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(json.dumps({"region": "us-east-1"}))
    said = refused(tmp_path, free_base(), "--config", str(path))
    assert said.startswith("lakemirror: configuration: organization_id: is required")


def test_a_configuration_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    assert "there is no configuration file" in refused(tmp_path, free_base(), "--config", str(tmp_path / "none.yaml"))
