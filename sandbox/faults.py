"""Faults that a service can be told: refuse, answer 500, answer nothing, hang, be slow, or answer for others."""

from __future__ import annotations

import fnmatch
import threading
import time
from dataclasses import dataclass
from enum import StrEnum
from wsgiref.types import WSGIEnvironment

from sandbox.httpd import Dropped

LONGEST_HANG = 600.0


class Mode(StrEnum):
    """What a service does to requests."""

    OK = "ok"
    ERROR = "error"  # 500 at once
    LATE_ERROR = "late-error"  # 500 after the work was done
    UNAVAILABLE = "unavailable"  # 503, S3's SlowDown
    THROTTLE = "throttle"  # 429 with Retry-After
    REVOKED = "revoked"  # the key is not known: lakeFS's 401, S3's 403
    DENIED = "denied"  # 403: the key may not do that
    FULL = "full"  # 507: no space left
    EMPTY = "empty"  # a listing without anything in it
    HANG = "hang"  # no answer until the fault is lifted
    REFUSE = "refuse"  # the connection is closed without an answer
    SLOW = "slow"  # the right answer, `seconds` later
    PROXY = "proxy"  # a store answers for what it lacks with what another region has; beside whatever else it is told


AWAY = {Mode.ERROR, Mode.UNAVAILABLE, Mode.THROTTLE, Mode.HANG, Mode.REFUSE}


@dataclass(slots=True)
class Fault:
    """`left` requests of `method` ("" any) whose path matches the glob `path` are treated so (-1: all of them)."""

    mode: Mode
    path: str = "*"
    method: str = ""
    seconds: float = 0.0
    left: int = -1

    def takes(self, method: str, path: str) -> bool:
        """Is this request to be treated so?"""
        return self.left != 0 and self.method in ("", method) and fnmatch.fnmatchcase(path, self.path)


class Service:
    """The faults of one service, shared by its threads."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._changed = threading.Condition()

    def tell(self, fault: Fault) -> None:
        """Arms a fault next to those armed before; mode OK lifts them all and lets hanging requests go on."""
        with self._changed:
            self._faults = [] if fault.mode is Mode.OK else [*self._faults, fault]
            self._changed.notify_all()

    def describe(self) -> list[dict[str, object]]:
        """The armed faults, for the status."""
        return [
            {"mode": f.mode, "path": f.path, "method": f.method, "seconds": f.seconds, "left": f.left}
            for f in self._faults
            if f.left
        ]

    @property
    def stopped(self) -> bool:
        """Would every request fail now? The in-process paths to a store ask this."""
        return any(f.left and f.path == "*" and not f.method and f.mode in AWAY for f in self._faults)

    def meet(self, environ: WSGIEnvironment) -> Mode:
        """Treats a request: OK to go on, else what to answer as. Raises Dropped to answer nothing."""
        fault = self._claim(environ, proxy=False)
        if fault is None:
            return Mode.OK
        if fault.mode is Mode.SLOW:
            time.sleep(fault.seconds)
            return Mode.OK
        if fault.mode is Mode.HANG:
            self._wait_until_lifted(fault)
        if fault.mode in (Mode.HANG, Mode.REFUSE):
            raise Dropped("told to give no answer")
        return fault.mode

    def proxies(self, environ: WSGIEnvironment) -> bool:
        """Is a store to answer this request, for what it lacks, with what another region has?"""
        return self._claim(environ, proxy=True) is not None

    def _claim(self, environ: WSGIEnvironment, *, proxy: bool) -> Fault | None:
        if not self._faults:
            return None
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        with self._changed:
            meant = (fault for fault in self._faults if (fault.mode is Mode.PROXY) is proxy)
            fault = next((fault for fault in meant if fault.takes(method, path)), None)
            if fault and fault.left > 0:
                fault.left -= 1
            return fault

    def _wait_until_lifted(self, fault: Fault) -> None:
        with self._changed:
            self._changed.wait_for(lambda: fault not in self._faults, timeout=fault.seconds or LONGEST_HANG)
