"""Limits that somebody changes while a job runs, a pause too: the worker writes them to a file at the destination, at
which the job's tasks look every few seconds. What a task does not hear of ends with the job, which never goes on long.
In the same breath a task tells how far it is, by a file of its own.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from core.bringing import Unbrought
from core.errors import LakeMirrorError
from core.mirroring.content_proof import OWN_FILES
from spark_jobs.check.progress import file_of
from spark_jobs.check.settings import Bring, CheckSettings

FILE = f"{OWN_FILES}copying.json"
"""Below the mirror's namespace."""
ASKED_SECONDS = 4.0


class Limited(Protocol):
    """What copies, at a pace, or not any more."""

    def pace(self, bytes_per_second: float, objects_per_second: float) -> None: ...
    def tell(self, uri: str, made_at: float) -> None: ...
    def stop(self) -> None: ...


class Reads(Protocol):
    """A store that gives small files."""

    def get(self, uri: str) -> bytes: ...


def limits_file(bring: Bring, *, ends: bool = False) -> bytes:
    """What tells the tasks that run now of the limits of `bring`, or that nothing more may be begun."""
    told = {
        "at": time.time(),
        "bytes_per_second": bring.bytes_per_second,
        "objects_per_second": bring.objects_per_second,
        "ends": ends,
    }
    return json.dumps(told).encode()


def can_change(old: Bring, new: Bring) -> bool:
    """Whether tasks that work by `old` can go on by `new`: as many workers, and no more tasks than may share it."""
    return old.workers == new.workers and new.most_tasks >= old.most_tasks


@contextmanager
def following(settings: CheckSettings, store: Reads, bringer: Limited) -> Iterator[None]:
    """While it lasts what copies heeds limits that were changed since the job was made, and tells how far it is."""
    bring, ended = settings.bring, threading.Event()
    if bring is None or not bring.made_at:
        yield
        return
    args = (bring, settings, store, bringer, ended)
    thread = threading.Thread(target=_follow, args=args, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _follow(bring: Bring, settings: CheckSettings, store: Reads, bringer: Limited, ended: threading.Event) -> None:
    heeded = bring.made_at
    while not ended.wait(ASKED_SECONDS):
        if bring.task >= 0:
            with suppress(Unbrought):
                bringer.tell(settings.uri_of(file_of(bring.task)), bring.made_at)
        told = _read(store, settings.uri_of(FILE))
        if told and told["at"] > heeded:
            heeded = told["at"]
            bringer.pace(told["bytes_per_second"] / bring.among, told["objects_per_second"] / bring.among)
            if told["ends"]:
                bringer.stop()


def _read(store: Reads, uri: str) -> dict[str, float] | None:
    """What the file says; None for what is no such file, or can't be had now: then it is asked for again."""
    try:
        told = json.loads(store.get(uri))
        return {name: float(told[name]) for name in ("at", "bytes_per_second", "objects_per_second", "ends")}
    except (LakeMirrorError, ValueError, TypeError, KeyError):
        return None
