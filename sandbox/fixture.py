"""A sandbox for a test: free ports, nothing left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox.client import Sandbox
from sandbox.layout import STATE_FILE, Layout

CHECKOUT = Path(__file__).resolve().parent.parent
START_SECONDS = 90.0
STOP_SECONDS = 15.0


@contextmanager
def running_sandbox(folder: Path, **options: object) -> Iterator[Sandbox]:
    """A sandbox in a folder of its own, at rest unless told otherwise: two regions, no company, no history. The options
    are those of `up`: regions=3, company=True, history=True, seed=7, delay=0.5, hook_url="...", extra_bucket="...".
    LAKEMIRROR_SANDBOX_LAKEFS puts real servers into it; lakefs="" does not let it."""
    command = [sys.executable, "-m", "sandbox", "up", "--dir", str(folder), "--free-ports"]
    for name, value in ({"regions": 2, "company": False, "history": False} | options).items():
        flag = f"--{name.replace('_', '-')}"
        command += [flag if value else f"--no-{flag[2:]}"] if isinstance(value, bool) else [flag, str(value)]
    folder.mkdir(parents=True, exist_ok=True)
    state, log = folder / STATE_FILE, folder / "sandbox.log"
    state.unlink(missing_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=CHECKOUT, env=os.environ | {"PYTHONUNBUFFERED": "1"}, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield _wait(process, state, log)
    finally:
        _stop(process)


def _wait(process: subprocess.Popen[bytes], state: Path, log: Path) -> Sandbox:
    deadline = time.monotonic() + START_SECONDS
    while not state.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the sandbox did not start: {log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.02)
    return Sandbox(Layout.from_json(json.loads(state.read_text())).control_url)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
