"""The process above the supervisor: whatever becomes of the supervisor, nothing that it started stays behind."""

from __future__ import annotations

import os
import signal
import sys

from launcher import kernel

_GRACE = 5.0


def stand() -> None:
    """Fork: the child returns and does the work, this process waits, reaps orphans and ends what is left.

    The child stops by itself if this process is killed (a death signal); this process ends all processes below it if
    the child is killed, because they become its children.
    """
    kernel.adopt_orphans()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        kernel.on_parent_death(signal.SIGTERM)
        if os.getppid() != parent:
            sys.exit(1)
        return
    status = _watch(child)
    kernel.end(lambda: kernel.descendants(parent), grace=_GRACE, reap=_reap)
    os._exit(status)


def _watch(child: int) -> int:
    """Wait for the child, handing on what a process manager sends; the status to exit with."""
    for signum in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(signum, lambda number, _: kernel.send([child], signal.Signals(number)))
    if _in_front_of_a_terminal():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it sends Ctrl-C to the child too
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _in_front_of_a_terminal() -> bool:
    """Whether Ctrl-C at a terminal reaches this process's group."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    finally:
        os.close(terminal)


def _reap() -> None:
    """Collect every dead child."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return
