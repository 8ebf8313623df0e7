"""The long-lived Spark Connect server on this machine's cores: `python -m lakemirror_site.spark_server`.

Replaces itself by Spark's own launcher, so that signals reach the JVM. Executors get the stores' keys by environment:
what stands in a plan or in Spark's settings could be read in its logs.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from lakemirror_site import config

_MEMORY = "1g"


def store_environment(settings: config.Config) -> dict[str, str]:
    """The keys of every region's store as executors look for them."""
    variables = {}
    for region in settings.regions:
        prefix = f"LAKEMIRROR_STORE_{region.upper().replace('-', '_')}"
        keys = settings.store(region).credentials
        pairs = {"ACCESS_KEY_ID": keys.access_key_id, "SECRET_ACCESS_KEY": keys.secret_access_key.reveal()}
        pairs["SESSION_TOKEN"] = keys.session_token.reveal()
        variables |= {f"{prefix}_{name}": value for name, value in pairs.items() if value}
    return variables


def _java_version(java_home: str) -> int:
    """The major version of the Java in a home; its release file tells it, else Java itself."""
    java = Path(java_home) / "bin" / "java" if java_home else Path("java")
    told = subprocess.run([java, "-XshowSettings:properties", "-version"], capture_output=True, text=True).stderr
    line = next((line for line in told.splitlines() if "java.specification.version =" in line), "= 17")
    return int(line.rpartition("=")[2].strip().partition(".")[0])


def class_archive(java_home: str, folder: Path) -> list[str]:
    """Options to keep loaded classes on disk between starts, which halves a start; written when the JVM ends."""
    folder.mkdir(parents=True, exist_ok=True)
    version = _java_version(java_home)
    name = hashlib.sha256(f"{java_home} {version}".encode()).hexdigest()[:12]
    archive = folder / f"spark-{name}.jsa"
    if version >= 19:
        return ["-XX:+AutoCreateSharedArchive", f"-XX:SharedArchiveFile={archive}"]
    return [f"-XX:SharedArchiveFile={archive}" if archive.exists() else f"-XX:ArchiveClassesAtExit={archive}"]


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


def _options(settings: dict[str, str]) -> Iterator[str]:
    for name, value in settings.items():
        yield from ("--conf", f"{name}={value}")


def main() -> None:
    try:
        told = config.current()
    except config.ConfigError as error:
        sys.exit(f"lakemirror: configuration: {error}")
    import pyspark

    var = config.var_dir().resolve()
    spark_home = Path(pyspark.__file__).parent
    log_settings = Path(__file__).with_name("spark_log4j2.properties")
    java_options = ["-Xlog:disable", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    java_options += class_archive(os.environ.get("JAVA_HOME", ""), var / "cache")
    java_options += [f"-Dlog4j2.configurationFile={log_settings.as_uri()}"]
    port = int(os.environ.get("LAKEMIRROR_SPARK_PORT", "8120"))
    (var / "spark" / "local").mkdir(parents=True, exist_ok=True)
    command = [str(spark_home / "bin" / "spark-submit"), *_options(settings_of_spark(port, var, java_options))]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    environment = os.environ | store_environment(told)
    environment |= {"SPARK_HOME": str(spark_home), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment["SPARK_LOCAL_DIRS"] = str(var / "spark" / "local")
    environment["PYTHONPATH"] = os.pathsep.join([str(config.BASE_DIR), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment.pop("SPARK_REMOTE", None)
    os.chdir(var / "spark")
    os.execve(command[0], command, environment)


if __name__ == "__main__":
    main()
