"""Sessions: by Spark Connect (`sc://host:port`) or, with a master URL, a driver in this process.

All clients of a Connect server share one server-side session, named by the code they bring along. A session of one's
own costs a second or two at its first job and leaves three Python processes behind; code of another version gets
another session. Executors need no checkout: the code travels as an archive.
"""

from __future__ import annotations

import atexit
import fcntl
import functools
import hashlib
import io
import os
import shutil
import tempfile
import time
import uuid
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = (
    "graveler/**/*.py",
    "core/**/*.py",
    "adapters/__init__.py",
    "adapters/places/*.py",
    "adapters/rights_of_calls.py",
    "adapters/s3/*.py",
    "adapters/sealing.py",
    "spark_jobs/**/*.py",
)

_SESSIONS = uuid.UUID("5f0c2a1e-90a4-4d42-9d0b-3c1c54f6a0b7")
_MOST_CLOSED = 20
_CHANNEL = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_reconnect_backoff_ms", 1000)]
"""All channels of a process else share how long gRPC waits, up to minutes, before it tries a dead server again."""


def is_remote(url: str) -> bool:
    """Does this address lead to a Spark Connect server?"""
    return url.startswith("sc://")


def open_session(url: str) -> SparkSession:
    """A session that runs this project's code. Raises what pyspark raises."""
    session: SparkSession = _attach(url, code_file()) if is_remote(url) else _drive(url, code_file())
    return session


@functools.cache
def code_file() -> Path:
    """The archive as a file named by its content; it stays until this process ends, for executors ask for it late."""
    archive = code_archive()
    folder = tempfile.mkdtemp(prefix="lakemirror-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder, f"lakemirror-{hashlib.sha256(archive).hexdigest()[:16]}.zip")
    path.write_bytes(archive)
    return path


def code_archive() -> bytes:
    """What executors run, as a zip; the same code gives the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for pattern in SHIPPED for path in ROOT.glob(pattern)):
            entry = zipfile.ZipInfo(str(path.relative_to(ROOT)))
            archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _attach(url: str, archive: Path) -> Any:
    """The shared session. One that was closed on the server can't be opened again: then the next one is shared."""
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException

    for number in range(_MOST_CLOSED):
        session = _client(url, str(uuid.uuid5(_SESSIONS, f"{archive.name} {number}")))
        try:
            with _one_at_a_time():
                _bring(session, archive)
        except SparkConnectGrpcException as error:
            session.stop()
            if error.getCondition() != "INVALID_HANDLE.SESSION_CLOSED":
                raise
        else:
            return session
    return _client(url, str(uuid.uuid4()))


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Of this machine's processes with this code: Spark's log has an error for clients that bring it together."""
    with Path(__file__).open("rb") as file:
        with suppress(OSError):  # a file system without locks: then they try again
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _bring(session: Any, archive: Path) -> None:
    """Give the server the code. Of clients that do so at the same instant the server lets one through: the others try
    again, and find it there."""
    from pyspark.errors import PySparkException

    for pause in (0.3, 1.0, 0.0):
        try:
            session.addArtifacts(str(archive), pyfile=True)
        except PySparkException as error:
            if not pause or "FileAlreadyExistsException" not in str(error):
                raise
            time.sleep(pause)
        else:
            return


def _client(url: str, session_id: str) -> Any:
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    builder = DefaultChannelBuilder(url, _CHANNEL)
    if builder.session_id is None:
        builder.set("session_id", session_id)
    session = RemoteSession.builder.channelBuilder(builder).create()
    # The client's own policy would go on for ten minutes after the server has died; this one for about five seconds.
    brief = DefaultPolicy(max_retries=5, initial_backoff=100, backoff_multiplier=3.0, max_backoff=2000, jitter=100)
    session.client.set_retry_policies([brief])
    # Others go on using it.
    session.release_session_on_close = False
    return session


def _drive(master: str, archive: Path) -> Any:
    """A driver in this process."""
    from pyspark.sql import SparkSession

    with _not_remote():
        builder = SparkSession.builder.master(master).appName("LakeMirror").config("spark.ui.enabled", "false")
        session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.addPyFile(str(archive))
    return session


@contextmanager
def _not_remote() -> Iterator[None]:
    """pyspark takes SPARK_REMOTE from the environment before what it is told."""
    remote = os.environ.pop("SPARK_REMOTE", None)
    try:
        yield
    finally:
        if remote is not None:
            os.environ["SPARK_REMOTE"] = remote
