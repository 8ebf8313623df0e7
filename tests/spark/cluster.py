"""A standalone Spark cluster for tests, from the pip package: one master and two workers on loopback.

Every process bears a mark in its environment, which its children inherit: so executors can be found, and none is left.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from tests.spark.server import free_port, spark_environment, spark_home

START_SECONDS = 60.0
STOP_SECONDS = 10.0
EXECUTOR = b"org.apache.spark.executor.CoarseGrainedExecutorBackend"
_SMALL = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_MARK = "LAKEMIRROR_TEST_CLUSTER"


class Cluster:
    """A master and two workers of two cores each. Executors see the sandbox stores' keys, under our names only."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"spark://127.0.0.1:{self.port}"
        self._mark = str(uuid.uuid4())
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start; gives back control when both workers have been accepted."""
        self._run("master.Master", "--host", "127.0.0.1", "--port", str(self.port), "--webui-port", "0")
        self._wait_for("I have been elected leader", 1)
        for _ in range(2):
            options = ["--host", "127.0.0.1", "--webui-port", "0", "--cores", "2", "--memory", "3g"]
            self._run("worker.Worker", *options, "--work-dir", str(self.folder / "work"), self.url)
        self._wait_for("Registering worker", 2)

    def _run(self, name: str, *arguments: str) -> None:
        command = [str(spark_home() / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
        with self._log.open("ab") as log:
            started = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self.folder, env=self._environment(), start_new_session=True
            )
        self._started.append(started)

    def _environment(self) -> dict[str, str]:
        """Which Python executors run is the driver's business, so nothing is said of it here."""
        kept = {name: value for name, value in spark_environment().items() if not name.startswith(("AWS_", "PYSPARK_"))}
        return kept | {
            _MARK: self._mark,
            "AWS_EC2_METADATA_DISABLED": "true",
            "SPARK_HOME": str(spark_home()),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"{_SMALL} -Dspark.master.rest.enabled=false",
            "SPARK_LOCAL_DIRS": str(self.folder),
        }

    @property
    def _log(self) -> Path:
        return self.folder / "cluster.log"

    def _wait_for(self, line: str, times: int) -> None:
        _until(lambda: self._log.read_text().count(line) >= times, START_SECONDS, lambda: self._log.read_text()[-3000:])

    def processes(self) -> dict[int, bytes]:
        """Command lines of all that run, also what executors have started, by process id."""
        mark, found = f"{_MARK}={self._mark}".encode(), {}
        for process in self._started:
            process.poll()
        for folder in Path("/proc").glob("[0-9]*"):
            # A process may end while it is looked at.
            with contextlib.suppress(OSError):
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    found[int(folder.name)] = (folder / "cmdline").read_bytes()
        return found

    def executors(self) -> list[int]:
        """Process ids of the executors, all applications' together."""
        return [pid for pid, command in self.processes().items() if EXECUTOR in command]

    def stop(self) -> None:
        """End every process; raises AssertionError if one stays."""
        for how in (signal.SIGTERM, signal.SIGKILL):
            for pid in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, how)
            with contextlib.suppress(AssertionError):
                return _until(lambda: not self.processes(), STOP_SECONDS, lambda: repr(self.processes()))
        raise AssertionError(f"still running: {self.processes()}")


def _until(true: Callable[[], bool], seconds: float, told: Callable[[], str]) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, told()
        time.sleep(0.1)
