"""What Linux tells and does about processes: parents, sessions, death signals."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def adopt_orphans() -> None:
    """Processes below this one whose parent dies become its children."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def on_parent_death(signum: signal.Signals) -> None:
    """Get this signal when the parent dies."""
    _prctl(_PR_SET_PDEATHSIG, signum)


def _stat(pid: int) -> tuple[str, int, int] | None:
    """A process's (state, parent, session); None if it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, parent, _group, session = text.rpartition(")")[2].split()[:4]
    return state, int(parent), int(session)


def _living() -> dict[int, tuple[str, int, int]]:
    """Every process that is not a zombie."""
    pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return {pid: stat for pid in pids if (stat := _stat(pid)) and stat[0] not in "ZX"}


def session_members(session: int) -> list[int]:
    """The living processes of a session."""
    return [pid for pid, (_, _, own) in _living().items() if own == session]


def descendants(root: int) -> list[int]:
    """The living processes below one, however deep."""
    living = _living()
    below: list[int] = []
    frontier = {root}
    while frontier:
        frontier = {pid for pid, (_, parent, _) in living.items() if parent in frontier}
        below += frontier
    return below


def send(pids: Iterable[int], signum: signal.Signals) -> None:
    """A signal to each; those that are gone are no error."""
    for pid in pids:
        try:
            os.kill(pid, signum)
        except ProcessLookupError:
            continue


def end(members: Callable[[], list[int]], *, grace: float, reap: Callable[[], None] = lambda: None) -> None:
    """End all that `members()` lists: ask, wait up to `grace` seconds, kill until none is left."""
    deadline = time.monotonic() + grace
    signum = signal.SIGTERM
    send(members(), signum)
    while left := members():
        if time.monotonic() > deadline:
            send(left, signal.SIGKILL)
        time.sleep(0.05)
        reap()
