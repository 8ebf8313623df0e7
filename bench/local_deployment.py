"""A deployment of a measurement's own: real tables (SQLite in a folder of its own), no queue; Spark if wanted."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

SPARK_SECONDS = 120.0


@contextlib.contextmanager
def fresh_database() -> Iterator[None]:
    """Django on an empty database in a folder that is removed afterwards; no message is sent to anybody."""
    folder = tempfile.mkdtemp(prefix="lakemirror-bench-")
    os.environ |= {"DJANGO_SETTINGS_MODULE": "lakemirror_site.settings_test", "LAKEMIRROR_TEST_VAR": folder}
    try:
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", verbosity=0)
        with mock.patch("jobs.duties.async_task"):
            yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def add_mirror(
    name: str = "lake", region: str = "eu-west-1", *, source: str = "s3://src/lake", mirror: str = "s3://dst/lake"
) -> Any:
    """The rows of a mirror whose repository was made: of `name` in us-east-1, with these namespaces."""
    from mirrors.models import Mirror, Repository
    from mirrors.transitions import duties as mirror_duties

    repository = Repository.objects.create(
        region="us-east-1",
        name=name,
        storage_namespace=source,
        creation_date=1_790_000_000,
        default_branch="main",
    )
    made = Mirror.objects.create(
        name=f"{name}-eu",
        source=repository,
        region=region,
        storage_namespace=mirror,
        state=Mirror.State.ACTIVE,
        pinned_creation_date=1_790_000_001,
    )
    mirror_duties.ensure_mirror_duties(made)
    return made


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds on the clock, and of this process alone: on a busy machine they differ."""

    clock: float
    process: float


def run_duty(kind: str, subject: int) -> Took:
    """Let a duty run as a worker does, claim and release included. One that fails ends the measurement."""
    from django.db.models.functions import Now

    from jobs import duties
    from jobs.models import Duty

    duty = Duty.objects.get(kind=kind, subject=subject)
    Duty.objects.filter(pk=duty.pk).update(due_at=Now())
    began, used = time.perf_counter(), time.process_time()
    summary = duties.run(duty.pk)
    took = Took(time.perf_counter() - began, time.process_time() - used)
    duty.refresh_from_db()
    if duty.failures:
        raise SystemExit(f"{kind} failed: {summary}")
    return took


@dataclass(frozen=True, slots=True)
class RunningSpark:
    """Where it is; `session`: of its processes on this machine, 0 if that is not known."""

    url: str
    session: int = 0

    def processor(self) -> float:
        """Seconds of the processor that its processes, also those that ended, have spent (where there is /proc)."""
        if not self.session:
            return 0.0
        return sum(_spent(stat, self.session) for stat in Path("/proc").glob("[0-9]*/stat"))


def _spent(stat: Path, session: int) -> float:
    with contextlib.suppress(OSError):
        fields = stat.read_text().rpartition(")")[2].split()
        if int(fields[3]) == session:
            return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return 0.0


@contextlib.contextmanager
def running_spark() -> Iterator[RunningSpark]:
    """A Spark Connect server as the service starts it, on two of this machine's cores."""
    # Whatever is left of a client tells so when the server has ended.
    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")
    port = _free_port()
    with tempfile.TemporaryDirectory(prefix="lakemirror-bench-") as folder:
        told = {"LAKEMIRROR_VAR": folder, "LAKEMIRROR_SPARK_PORT": str(port)}
        process = subprocess.Popen(
            [sys.executable, "-m", "deployment.spark_server"],
            cwd=ROOT,
            env=os.environ | told,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            _wait_for(process, port)
            yield RunningSpark(f"sc://127.0.0.1:{port}", process.pid)
        finally:
            process.terminate()
            process.wait(30)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + SPARK_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise SystemExit("Spark did not start")
