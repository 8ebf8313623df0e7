"""Child processes that never outlive their parent."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1
PATIENCE = 5.0
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(sign: int = signal.SIGTERM) -> None:
    """Asks the kernel to send this process a signal when the thread that made it ends (Linux)."""
    _libc.prctl(PR_SET_PDEATHSIG, sign, 0, 0, 0)


def fork(run: Callable[[], None]) -> int:
    """Runs `run` in a child process and gives its id. Call it from the main thread before any other is started."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        die_with_parent()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent ends us
        if os.getppid() == parent:
            run()
        code = 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def start(command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Starts a program in a session of its own (Ctrl-C passes it by), its output into a file."""
    with log.open("ab") as output:
        return subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )


def running(pid: int) -> bool:
    """Is this child still there? Takes note of its end."""
    try:
        return os.waitpid(pid, os.WNOHANG) == (0, 0)
    except ChildProcessError:
        return False


def end(pids: Sequence[int], patience: float = PATIENCE) -> None:
    """Ends children: SIGTERM, and SIGKILL for those still there after a while."""
    left = [pid for pid in pids if running(pid)]
    for sign, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, patience)):
        for pid in left:
            os.kill(pid, sign)
        deadline = time.monotonic() + seconds
        while left and time.monotonic() < deadline:
            time.sleep(0.01)
            left = [pid for pid in left if running(pid)]
