"""The process tree: it starts with one command, writes its configuration, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deployment import config
from sandbox.client import Sandbox
from sandbox.fixture import CHECKOUT, running_sandbox


def children_of(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in listed.split()]


def gone(pid: int) -> bool:
    """Has the process ended (a zombie that nobody took note of counts as ended)?"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")
    except FileNotFoundError:
        return True


def start(folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "sandbox", "up", "--dir", str(folder), "--free-ports", "--lakefs", ""]
    process = subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"sandbox ready")
    return process


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_the_sandbox(tmp_path: Path, sign: signal.Signals) -> None:
    process = start(tmp_path)
    regions = children_of(process.pid)
    assert len(regions) == 3
    process.send_signal(sign)
    assert process.wait(10) == (-signal.SIGKILL if sign == signal.SIGKILL else 0)
    deadline = time.monotonic() + 5
    while not all(gone(pid) for pid in regions) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [pid for pid in regions if not gone(pid)] == []


def test_the_sandbox_ends_when_a_region_dies(tmp_path: Path) -> None:
    process = start(tmp_path)
    os.kill(children_of(process.pid)[0], signal.SIGKILL)
    assert process.wait(10) == 1


def test_a_port_in_use_is_one_clear_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        base = taken.getsockname()[1] - 100
        command = [sys.executable, "-m", "sandbox", "up", "--dir", str(tmp_path)]
        environment = os.environ | {"LAKEMIRROR_PORT_BASE": str(base)}
        ended = subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, timeout=20)
    assert ended.returncode == 1
    assert ended.stderr == f"sandbox: port {base + 100} can't be used on 127.0.0.1: Address already in use\n"


def test_lakemirror_reads_the_configuration_that_the_sandbox_writes(tmp_path: Path) -> None:
    with running_sandbox(tmp_path, lakefs="", hook_secret="s3cr3t") as sandbox:
        found = config.load(tmp_path / "lakemirror.yaml", {})
        for region in sandbox.layout.regions:
            installation = found.installation(region.name)
            assert installation.lakefs is not None and installation.lakefs.url == region.lakefs_url
            assert installation.store.endpoint == region.s3_url
            assert installation.store.credentials.access_key_id == Sandbox.access_key_id
        assert found.served == ("us-east-1", "eu-west-1")
        assert str(found.hook_secret("us-east-1")) == "s3cr3t"
    first = found.auth.encrypt.secret_key
    with running_sandbox(tmp_path, lakefs=""):
        assert config.load(tmp_path / "lakemirror.yaml", {}).auth.encrypt.secret_key == first


def test_ctl_finds_the_sandbox_of_a_folder(tmp_path: Path) -> None:
    with running_sandbox(tmp_path, lakefs="") as sandbox:

        def ctl(*words: str) -> subprocess.CompletedProcess[str]:
            command = [sys.executable, "-m", "sandbox", "ctl", "--dir", str(tmp_path), *words]
            return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=20)

        assert ctl("hold", "lake/data/*", "--count", "1").stdout == "done\n"
        assert sandbox.status()["replication"]["rules"][0]["pattern"] == "lake/data/*"
        assert ctl("release").stdout == "0 objects released\n"
        assert json.loads(ctl("status").stdout)["replication"]["rules"] == []
        assert ctl("fault", sandbox.destination.name, "s3", "proxy").stdout == "done\n"
        assert sandbox.status()["faults"][sandbox.destination.name]["s3"][0]["mode"] == "proxy"
        assert ctl("fault", "nowhere", "s3", "error").returncode == 1
    assert ctl("status").stderr == f"sandbox: no sandbox runs in {tmp_path}\n"
