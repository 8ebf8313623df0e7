"""A demo of a measurement's own: `scripts/run` of some checkout, on ports and in a folder that nobody else uses."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from sandbox.client import Sandbox
from sandbox.lakefs_http import LakeFS
from sandbox.layout import CONTROL, LAKEFS, S3, WEB

ROOT = Path(__file__).resolve().parent.parent
REPOSITORY, MIRROR, BRANCH = "lake", "lake-eu", "main"
SPARK = 120
STOP_SECONDS = 90.0
PORT_BASES = range(21000, 31000, 200)


class NotReady(Exception):
    """The demo ended, or something did not happen in time."""


@dataclass(frozen=True, slots=True)
class Demo:
    """A running demo."""

    process: subprocess.Popen[bytes]
    var: Path
    log: Path
    port: int
    began: float

    @property
    def page(self) -> str:
        """The address of its pages."""
        return f"http://127.0.0.1:{self.port + WEB}"

    @property
    def sandbox(self) -> Sandbox:
        """Its two regions."""
        return Sandbox(f"http://127.0.0.1:{self.port + CONTROL}")

    def lakefs(self, region: int) -> LakeFS:
        """A client of the lakeFS of a region, by its number."""
        return LakeFS(f"http://127.0.0.1:{self.port + LAKEFS[region]}")

    def source(self) -> LakeFS:
        """A client of the lakeFS that is mirrored."""
        return self.lakefs(0)

    def destination(self) -> LakeFS:
        """A client of the lakeFS that holds the mirror."""
        return self.lakefs(1)

    def rows(self, query: str, *values: object) -> list[tuple[object, ...]]:
        """Rows of its database, which is only read."""
        path = self.var / "demo" / "lakemirror.sqlite3"
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=20)) as database:
            return database.execute(query, values).fetchall()

    def is_prepared(self) -> bool:
        """Is nothing left of what the page lists as still being prepared?"""
        try:
            stages = json.loads((self.var / "run" / "status.json").read_text())["stages"]
        except FileNotFoundError:
            return False
        return all(stage["state"] == "ready" for stage in stages)

    def wait(self, condition: Callable[[], bool], what: str, *, seconds: float = 300.0, every: float = 0.05) -> float:
        """Ask until it is so; seconds since the demo's start. Raises NotReady with the end of the log."""
        deadline = time.monotonic() + seconds
        while not condition():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise NotReady(f"{what}: not so; the log ends with\n{self.log_end()}")
            time.sleep(every)
        return time.monotonic() - self.began

    def log_end(self, lines: int = 15) -> str:
        """The last lines that it printed."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


@contextmanager
def running_demo(root: Path = ROOT, *, env: Mapping[str, str] | None = None, log: Path | None = None) -> Iterator[Demo]:
    """Start `scripts/run` of a checkout with a folder of its own; stop all of it in the end. `log`: kept if given."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="lakemirror-bench-") as folder:
        var, port = Path(folder), free_base()
        log = log or var / "log"
        told = {"LAKEMIRROR_VAR": folder, "LAKEMIRROR_PORT_BASE": str(port)}
        with log.open("wb") as output:
            process = subprocess.Popen(
                [root / "scripts" / "run"],
                cwd=root,
                env={**(os.environ if env is None else env), **told},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            yield Demo(process, var, log, port, time.monotonic())
        finally:
            stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """As Ctrl-C does: to the whole group. The process above the supervisor ends whatever would stay."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
    process.wait(STOP_SECONDS)


def free_base() -> int:
    """A number to which the demo can add each of its own."""
    return next(
        base for base in PORT_BASES if all(map(is_free, (base + n for n in (WEB, CONTROL, *LAKEFS, *S3, SPARK))))
    )


def is_free(port: int) -> bool:
    """Can somebody listen there?"""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
