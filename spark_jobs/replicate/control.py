"""Limits that somebody changes while tasks copy, a pause and a stop too: whoever holds the lease writes them to a file
in the state place, each task's share of them, and the tasks ask for it every few seconds. What a task does not hear of
ends with its slice.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from core.errors import LakeMirrorError
from spark_jobs.replicate.settings import Limits

ASKED_SECONDS = 4.0


class Keeps(Protocol):
    """A state place; adapters/places/state.py."""

    def write(self, name: str, data: bytes) -> None: ...
    def changed(self, name: str, etag: str = "") -> tuple[bytes, str] | None: ...


class Paced(Protocol):
    """What moves objects, at a pace."""

    def pace(self, bytes_per_second: float, objects_per_second: float) -> None: ...


def control_name(folder: str) -> str:
    """The file of a link, in its folder of the state place."""
    return f"{folder}control.json"


@dataclass
class Controlling:
    """Tells the tasks of a job what holds now. `tasks` of them are at work, by these `limits` of them all together."""

    state: Keeps
    name: str
    job: str
    limits: Limits
    tasks: int
    ended: bool = False
    silent: bool = False
    """Nothing may be written there any more."""
    _told: tuple[Limits, bool] = field(init=False)
    _number: int = 0

    def __post_init__(self) -> None:
        self._told = self.limits.shared(self.tasks), False

    def pace(self, bytes_per_second: float, objects_per_second: float) -> None:
        """The link may no more than that from now on; 0: any number."""
        self.limits = Limits(self.limits.workers, bytes_per_second, objects_per_second)
        self.tell()

    def has_ended(self) -> None:
        """One of the tasks is done: the others share what it had."""
        self.tasks = max(1, self.tasks - 1)

    def stop(self) -> None:
        """Nothing more may be begun."""
        self.ended = True
        self.tell()

    def close(self) -> None:
        """Nobody listens any more."""

    def tell(self) -> bool:
        """Write down what has changed; whether that is so by now. What can't be written is tried at the next turn."""
        share = self.limits.shared(self.tasks)
        if self.silent or (share, self.ended) == self._told:
            return True
        told = {
            "job": self.job,
            "number": self._number + 1,
            "bytes_per_second": share.bytes_per_second,
            "objects_per_second": share.objects_per_second,
            "ends": self.ended,
        }
        try:
            self.state.write(self.name, json.dumps(told).encode())
        except LakeMirrorError:
            return False
        self._told, self._number = (share, self.ended), self._number + 1
        return True


@dataclass
class Following:
    """What a task has heard. `asked`: how often it asked, and `unchanged`: how often there was nothing new."""

    state: Keeps
    name: str
    job: str
    stopped: bool = False
    asked: int = 0
    unchanged: int = 0
    _number: int = 0
    _etag: str = ""

    def look(self, mover: Paced) -> None:
        """Ask once, and heed what is new. What can't be read, is no such file, or is of another job says nothing."""
        self.asked += 1
        try:
            found = self.state.changed(self.name, self._etag)
            if found is None:
                self.unchanged += 1
                return
            data, self._etag = found
            told = json.loads(data)
            number = int(told["number"])
            if told["job"] != self.job or number <= self._number:
                return
            rates = float(told["bytes_per_second"]), float(told["objects_per_second"])
            self.stopped = self.stopped or bool(told["ends"])
        except (LakeMirrorError, ValueError, TypeError, KeyError):
            return
        self._number = number
        mover.pace(*rates)


@contextmanager
def following(heard: Following, mover: Paced, on_stop: Callable[[], None]) -> Iterator[None]:
    """While it lasts what copies heeds what is told. `on_stop`: called once nothing more may be begun."""
    over = threading.Event()

    def follow() -> None:
        while not over.wait(ASKED_SECONDS):
            heard.look(mover)
            if heard.stopped:
                on_stop()
                return

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
