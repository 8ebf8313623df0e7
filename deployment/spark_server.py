"""The long-lived Spark Connect server on this machine's cores: `python -m deployment.spark_server [--train]`.

Replaces itself by Spark's own launcher, so that signals reach the JVM. Stores' keys come sealed with each job, for what
stands in a plan or in Spark's settings could be read in its logs; executors have what opens them in their environment.
"""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from core.store_access import EXECUTORS_KEY
from deployment import config

_MEMORY = "1g"
_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_TRAINING_SECONDS = 120.0
OWN_VARIABLES = ("REPLICATION_", "LAKEMIRROR_ADMIN_", "LAKEMIRROR_SECRET_KEY", "LAKEMIRROR_OLD_", "LAKEMIRROR_SANDBOX_")
_PLAIN = {name.replace(".", "_") for name in config.PLAIN_NAMES}


def without_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment without what LakeMirror itself is told there: Spark needs none of it."""
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith(OWN_VARIABLES) and name.lower() not in _PLAIN
    }


def class_archive(java_home: str, folder: Path) -> Path:
    """Where the classes that Spark loads are kept for the next start, one file for each Java; see `train`."""
    java = Path(java_home or "/usr") / "bin" / "java"
    version = subprocess.run([java, "-version"], capture_output=True, text=True).stderr
    return folder / f"spark-{hashlib.sha256(f'{java} {version}'.encode()).hexdigest()[:12]}.jsa"


def settings_of_spark(port: int, var: Path, java_options: list[str]) -> dict[str, str]:
    """Spark's own settings: this machine only, no UI, and no Python environment per session."""
    cores = os.environ.get("LAKEMIRROR_SPARK_CORES", "2")
    return {
        "spark.master": f"local[{cores}]",
        "spark.app.name": "LakeMirror",
        "spark.driver.memory": os.environ.get("LAKEMIRROR_SPARK_MEMORY", _MEMORY),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": " ".join(java_options),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": cores,
        "spark.sql.warehouse.dir": str(var / "spark" / "warehouse"),
        "spark.sql.artifact.isolation.enabled": "false",
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
    }


def start(configuration: config.Config, port: int, java_options: list[str]) -> tuple[list[str], dict[str, str]]:
    """The command of the server and its environment."""
    import pyspark

    var = config.var_dir().resolve()
    spark_home = Path(pyspark.__file__).parent
    log_settings = Path(__file__).with_name("spark_log4j2.properties").as_uri()
    own = ["-Xlog:disable", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Dlog4j2.configurationFile={log_settings}"]
    (var / "spark" / "local").mkdir(parents=True, exist_ok=True)
    settings = settings_of_spark(port, var, [*own, *java_options])
    options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    command = [str(spark_home / "bin" / "spark-submit"), *options, "--class", _SERVER, "spark-internal"]
    environment = without_secrets(os.environ) | {EXECUTORS_KEY: configuration.derived_key("executors")}
    environment |= {"SPARK_HOME": str(spark_home), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment["SPARK_LOCAL_DIRS"] = str(var / "spark" / "local")
    environment["PYTHONPATH"] = os.pathsep.join([str(config.BASE_DIR), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment.pop("SPARK_REMOTE", None)
    return command, environment


def serve(configuration: config.Config, archive: Path) -> None:
    """Become the server; Java reads its classes from the archive if there is one."""
    port = int(os.environ.get("LAKEMIRROR_SPARK_PORT", "8120"))
    command, environment = start(configuration, port, [f"-XX:SharedArchiveFile={archive}"] if archive.exists() else [])
    os.chdir(config.var_dir() / "spark")
    os.execve(command[0], command, environment)


def train(configuration: config.Config, archive: Path) -> None:
    """Make the archive, which more than halves later starts: a server of its own loads what a job needs, then ends.

    Java writes the archive as it ends, which takes some seconds: too long for a server that somebody waits for.
    """
    if archive.exists():
        return
    fresh = archive.with_suffix(f".{os.getpid()}")
    archive.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command, environment = start(configuration, port, [f"-XX:ArchiveClassesAtExit={fresh}"])
    with subprocess.Popen(
        command, env=environment, stderr=subprocess.DEVNULL, cwd=config.var_dir() / "spark"
    ) as server:
        try:
            _small_job(port)
        finally:
            server.terminate()
    fresh.replace(archive)


def _small_job(port: int) -> None:
    """What each of our jobs does, on a few rows."""
    from pyspark.sql import SparkSession

    deadline = time.monotonic() + _TRAINING_SECONDS
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        if time.monotonic() > deadline:
            raise TimeoutError(f"no Spark on port {port} within {_TRAINING_SECONDS} s")
        time.sleep(0.2)
    session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    rows = session.range(4, numPartitions=2).repartition(2).mapInArrow(lambda batches: batches, "id long")
    assert rows.count() == len(list(rows.toLocalIterator()))
    session.stop()


def main() -> None:
    try:
        configuration = config.current()
    except config.ConfigError as error:
        sys.exit(f"lakemirror: configuration: {error}")
    archive = class_archive(os.environ.get("JAVA_HOME", ""), config.var_dir().resolve() / "cache")
    work = train if sys.argv[1:] == ["--train"] else serve
    work(configuration, archive)


if __name__ == "__main__":
    main()
