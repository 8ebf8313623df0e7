"""A Spark Connect server for tests, on two local cores. It knows nothing of this project: the code comes by session."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from sandbox.layout import ACCESS_KEY_ID, SECRET_ACCESS_KEY
from tests.s3_double import KEYS

START_SECONDS = 90.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def spark_environment() -> dict[str, str]:
    """What Spark's processes see: the keys of the double and of the sandbox's stores, and no path to this checkout."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_REMOTE")}
    keys = {"AWS_ACCESS_KEY_ID": KEYS["access_key_id"], "AWS_SECRET_ACCESS_KEY": KEYS["secret_access_key"]}
    for region in ("US_EAST_1", "EU_WEST_1"):
        keys[f"LAKEMIRROR_STORE_{region}_ACCESS_KEY_ID"] = ACCESS_KEY_ID
        keys[f"LAKEMIRROR_STORE_{region}_SECRET_ACCESS_KEY"] = SECRET_ACCESS_KEY
    return kept | keys | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}


def spark_home() -> Path:
    """Where the pip package has Spark."""
    import pyspark

    return Path(pyspark.__file__).parent


class ConnectServer:
    """Start, kill and start again on the same port. `options`: Spark's, in place of two local cores and so on."""

    def __init__(self, folder: Path, options: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self._options = options or {}
        self.port = free_port()
        self.url = f"sc://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        home = spark_home()
        options = {
            "spark.master": "local[2]",
            "spark.driver.memory": "700m",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(self.port),
            "spark.ui.enabled": "false",
            "spark.local.dir": str(self.folder),
            "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
        } | dict(self._options)
        command = [str(home / "bin" / "spark-submit")]
        for name, value in options.items():
            command += ["--conf", f"{name}={value}"]
        command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
        environment = spark_environment() | {"SPARK_HOME": str(home)}
        with (self.folder / "spark.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self.folder, env=environment, start_new_session=True
            )
        self._wait()

    def _wait(self) -> None:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            assert self._process is not None and self._process.poll() is None, self.log()
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.1)
        raise AssertionError(f"no Spark Connect server after {START_SECONDS} s\n{self.log()}")

    def log(self) -> str:
        return (self.folder / "spark.log").read_text()[-3000:]

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End the server and the Python workers of its group."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
