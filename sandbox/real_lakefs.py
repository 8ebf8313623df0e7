"""Real lakeFS servers in place of the stand-in: a local key-value store each, our S3, loopback only."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import yaml

from sandbox.layout import ACCESS_KEY_ID, SECRET_ACCESS_KEY, Region
from sandbox.processes import start

VARIABLE = "LAKEMIRROR_SANDBOX_LAKEFS"
START_SECONDS = 60.0


def binary() -> str:
    """The path of a real lakeFS in LAKEMIRROR_SANDBOX_LAKEFS, "" for the stand-in."""
    return os.environ.get(VARIABLE, "")


def start_lakefs(program: str, folder: Path, region: Region, port: int) -> subprocess.Popen[bytes]:
    """Starts a server with nothing in it, its store being the region's."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    file = folder / "lakefs.yaml"
    file.write_text(yaml.safe_dump(configuration(folder, region, port)))
    return start([program, "run", "--config", str(file)], folder / "lakefs.log")


def configuration(folder: Path, region: Region, port: int) -> dict[str, object]:
    """The server's configuration. It calls nobody but our store."""
    keys = {"access_key_id": ACCESS_KEY_ID, "secret_access_key": SECRET_ACCESS_KEY}
    s3 = {
        "region": region.name,
        "endpoint": region.s3_url,
        "force_path_style": True,
        "discover_bucket_region": False,
        "credentials": keys,
    }
    return {
        "listen_address": f"127.0.0.1:{port}",
        "logging": {"level": "WARN", "audit_log_level": "DEBUG"},
        "stats": {"enabled": False},
        "usage_report": {"enabled": False},
        "security": {"check_latest_version": False, "audit_check_url": ""},
        "database": {"type": "local", "local": {"path": str(folder / "kv"), "enable_logging": False}},
        "auth": {"encrypt": {"secret_key": "the sandbox keeps nothing"}},
        "committed": {"local_cache": {"dir": str(folder / "cache"), "size_bytes": 200_000_000}},
        "blockstore": {"type": "s3", "s3": s3},
        "installation": {"user_name": "admin", **keys},
    }


def wait_until_alive(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Returns when the server answers. Raises RuntimeError with the end of its log when it doesn't."""
    deadline = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{url}/_health", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise RuntimeError(f"lakeFS did not start: {log.read_text(errors='replace')[-400:]}")
