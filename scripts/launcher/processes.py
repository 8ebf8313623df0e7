"""The supervisor: keeps processes running, restarts what dies, stops everything in order.

Each process leads a session of its own, so that its own children are found and ended with it. One thread per process
starts it and waits for it: the kernel ties a death signal to the thread that started the process.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from launcher import ROOT, kernel
from launcher.console import Problem, console

_FIRST_DELAY, _LONGEST_DELAY, _STEADY = 0.5, 30.0, 60.0
_SETPRIV = shutil.which("setpriv")


@dataclass
class Process:
    """One program to keep running.

    `stop_seconds`: how long it may finish what it does when asked to stop. What others work with stops `last`.
    """

    name: str
    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    stop_seconds: float = 10.0
    last: bool = False
    on_restart: Callable[[], None] = lambda: None


def start(command: Sequence[str], env: Mapping[str, str]) -> subprocess.Popen[str]:
    """A program in a session of its own, ended when the starting thread dies; its two outputs as one stream."""
    tied = [_SETPRIV, "--pdeathsig", "TERM", "--"] if _SETPRIV else []
    return subprocess.Popen(
        [*tied, *command],
        cwd=ROOT,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def _told(code: int) -> str:
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"


class Keeper:
    """Keeps one process running until told to stop."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.restarts = 0
        self._stopping = threading.Event()
        self._child: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._keep, name=process.name, daemon=True)

    def begin(self) -> Keeper:
        self._thread.start()
        return self

    def _keep(self) -> None:
        delay = _FIRST_DELAY
        while not self._stopping.is_set():
            began = time.monotonic()
            code = self._once()
            if self._stopping.is_set():
                return
            delay = _FIRST_DELAY if time.monotonic() - began > _STEADY else delay
            console.line(self.process.name, f"{_told(code)}; starting it again in {delay:g} s")
            self._stopping.wait(delay)
            delay = min(2 * delay, _LONGEST_DELAY)
            self.restarts += 1
            self.process.on_restart()

    def _once(self) -> int:
        """Run it until it ends, then end what it left behind; its exit status."""
        with self._lock:
            if self._stopping.is_set():
                return 0
            child = self._child = start(self.process.command, self.process.env)
        reader = threading.Thread(target=self._relay, args=(child,), daemon=True)
        reader.start()
        code = child.wait()
        kernel.end(lambda: kernel.session_members(child.pid), grace=0 if code < 0 else 2)
        reader.join(timeout=2)
        return code

    def _relay(self, child: subprocess.Popen[str]) -> None:
        assert child.stdout is not None
        for line in child.stdout:
            if text := line.rstrip():
                console.line(self.process.name, text)

    def ask_to_stop(self) -> None:
        """SIGTERM to the process itself; it ends its own children."""
        with self._lock:
            self._stopping.set()
            if self._child is not None and self._child.poll() is None:
                self._child.terminate()

    def wait_stopped(self, deadline: float) -> None:
        """Wait until it has ended; at the deadline kill its whole session."""
        self._thread.join(max(0.0, deadline - time.monotonic()))
        if self._thread.is_alive() and self._child is not None:
            console.line(self.process.name, "did not stop in time: killed")
            kernel.send(kernel.session_members(self._child.pid), signal.SIGKILL)
            self._thread.join(5)


class Supervisor:
    """All processes. On stopping, those that work end first, then those that they work with."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self._keepers: list[Keeper] = []
        self._lock = threading.Lock()

    def keep(self, process: Process) -> Keeper | None:
        """Start a process and keep it running; nothing when everything is already stopping."""
        with self._lock:
            if self.stopping.is_set():
                return None
            keeper = Keeper(process).begin()
            self._keepers.append(keeper)
        return keeper

    @property
    def keeps_any(self) -> bool:
        """Was anything started?"""
        return bool(self._keepers)

    def stop(self) -> None:
        """Stop all: at once those that work, then at once those that are needed for it."""
        with self._lock:
            self.stopping.set()
        for last in (False, True):
            group = [keeper for keeper in self._keepers if keeper.process.last == last]
            began = time.monotonic()
            for keeper in group:
                keeper.ask_to_stop()
            for keeper in group:
                keeper.wait_stopped(began + keeper.process.stop_seconds)

    def once(self, command: Sequence[str], env: Mapping[str, str], *, seconds: float = 600, say: str = "") -> str:
        """Run a program to its end and give its output; Problem with its last line when it fails. Ends when we stop."""
        child = start(command, env)
        watch = threading.Thread(target=self._end_when_stopping, args=(child,), daemon=True)
        watch.start()
        try:
            output, _ = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            kernel.end(lambda: kernel.session_members(child.pid), grace=1)
            raise Problem(f"{say or command[-1]} took longer than {seconds:g} s") from None
        if self.stopping.is_set():
            raise Problem("stopped")
        if child.returncode:
            raise Failed(output, say or " ".join(command[-2:]))
        return output

    def _end_when_stopping(self, child: subprocess.Popen[str]) -> None:
        while child.poll() is None:
            if self.stopping.wait(0.1):
                kernel.end(lambda: kernel.session_members(child.pid), grace=2)
                return


class Failed(Problem):
    """A program that had to succeed didn't; `output` is all that it said, `reason` its last line."""

    def __init__(self, output: str, what: str) -> None:
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        self.output = output
        self.reason = lines[-1] if lines else "it said nothing"
        super().__init__(f"{what} failed: {self.reason}")


def inherited(**changes: str) -> dict[str, str]:
    """This process's environment with changes."""
    return {**os.environ, **changes}
