"""The supervisor on real processes: restarts, order, and that nothing stays behind, whoever is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from launcher import kernel
from launcher.console import Problem
from launcher.processes import Failed, Process, Supervisor
from launcher.session import Session

SCRIPTS = Path(__file__).resolve().parent.parent.parent / "scripts"
PARENT_OF_TWO = """
import subprocess, sys, time
own = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
children = [subprocess.Popen([sys.executable, "-c", own]) for _ in range(2)]
print("pids", *[child.pid for child in children], flush=True)
open(sys.argv[1], "a").write(" ".join(str(child.pid) for child in children) + "\\n")
time.sleep(600)
"""


def until(condition: Callable[[], object], seconds: float = 10) -> None:
    """Wait until it is so; fail after that many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)


def lives(pid: int) -> bool:
    """Is it there, and not only as a zombie?"""
    return kernel._stat(pid) is not None and kernel._stat(pid)[0] not in "ZX"  # type: ignore[index]


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    made = Supervisor()
    yield made
    made.stop()


def python(name: str, code: str, *arguments: str, **more: float) -> Process:
    return Process(name, [sys.executable, "-c", code, *arguments], dict(os.environ), **more)  # type: ignore[arg-type]


def test_what_a_process_says_is_passed_on_with_its_name(
    supervisor: Supervisor, capsys: pytest.CaptureFixture[str]
) -> None:
    said = ""
    supervisor.keep(python("greeter", "import time; print('good day', flush=True); time.sleep(60)"))

    def heard() -> bool:
        nonlocal said
        said += capsys.readouterr().out
        return "greeter     | good day" in said

    until(heard)


def test_a_process_killed_by_force_is_started_again_and_its_orphans_are_ended(
    supervisor: Supervisor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = tmp_path / "pids"
    keeper = supervisor.keep(python("family", PARENT_OF_TWO, str(told), stop_seconds=1))
    until(lambda: told.exists() and told.read_text().count("\n") == 1)
    orphans = [int(pid) for pid in told.read_text().split()]
    assert keeper and keeper._child
    os.kill(keeper._child.pid, signal.SIGKILL)
    until(lambda: told.read_text().count("\n") == 2)
    assert not any(lives(pid) for pid in orphans)
    assert "was killed by SIGKILL; starting it again in 0.5 s" in capsys.readouterr().out


def test_a_process_that_keeps_failing_waits_longer_each_time(
    supervisor: Supervisor, capsys: pytest.CaptureFixture[str]
) -> None:
    keeper = supervisor.keep(python("failing", "raise SystemExit(3)"))
    assert keeper
    until(lambda: keeper.restarts >= 2)
    said = capsys.readouterr().out
    assert "ended with status 3; starting it again in 0.5 s" in said
    assert "starting it again in 1 s" in said


def test_what_others_work_with_stops_last(supervisor: Supervisor, tmp_path: Path) -> None:
    code = (
        "import signal, sys, time\n"
        "def stop(*_): time.sleep(float(sys.argv[3])); open(sys.argv[1], 'a').write(sys.argv[2]); sys.exit()\n"
        "signal.signal(signal.SIGTERM, stop); open(sys.argv[1] + sys.argv[2], 'w'); time.sleep(60)"
    )
    order = tmp_path / "order"
    for name, seconds in (("store", "0"), ("worker", "0.3")):
        supervisor.keep(python(name, code, str(order), name, seconds, last=name == "store"))
    until(lambda: all((tmp_path / f"order{name}").exists() for name in ("store", "worker")))
    supervisor.stop()
    assert order.read_text() == "workerstore"


def test_a_process_that_does_not_stop_in_time_is_killed_with_its_children(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    told = tmp_path / "pids"
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + PARENT_OF_TWO
    supervisor.keep(python("deaf", deaf, str(told), stop_seconds=0.3))
    until(told.exists)
    until(lambda: told.read_text().count("\n") == 1)
    supervisor.stop()
    until(lambda: not any(lives(int(pid)) for pid in told.read_text().split()))


def test_nothing_starts_once_everything_stops(supervisor: Supervisor) -> None:
    supervisor.stop()
    assert supervisor.keep(python("late", "pass")) is None


def test_a_step_that_fails_is_told_by_its_last_line(supervisor: Supervisor) -> None:
    code = "import sys; print('before'); print('the reason'); sys.exit(1)"
    with pytest.raises(Failed, match="the step failed: the reason"):
        supervisor.once([sys.executable, "-c", code], dict(os.environ), say="the step")


def test_a_step_that_was_ended_by_stopping_never_counts_as_done(supervisor: Supervisor) -> None:
    threading.Timer(0.2, supervisor.stopping.set).start()
    with pytest.raises(Problem, match="stopped"):
        supervisor.once([sys.executable, "-c", "import time; time.sleep(60)"], dict(os.environ))


def test_a_step_that_hangs_is_ended(supervisor: Supervisor) -> None:
    with pytest.raises(Problem, match=r"took longer than 0\.3 s"):
        supervisor.once([sys.executable, "-c", "import time; time.sleep(60)"], dict(os.environ), seconds=0.3)


GUARDED = """
import sys
sys.path.insert(0, {scripts!r})
from launcher import guard
guard.stand()
import os, signal, threading
from launcher.processes import Process, Supervisor
supervisor = Supervisor()
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, lambda *_: supervisor.stopping.set())
supervisor.keep(Process("family", [sys.executable, "-c", {family!r}, {told!r}], dict(os.environ), stop_seconds=1))
print("supervisor", os.getpid(), flush=True)
while not supervisor.stopping.wait(1):
    pass
supervisor.stop()
sys.exit(7)
"""


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int, list[int]]]:
    """A guard, its supervisor and a process with two deaf children: the guard, the others' ids."""
    told = tmp_path / "pids"
    code = GUARDED.format(scripts=str(SCRIPTS), family=PARENT_OF_TWO, told=str(told))
    guard = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert guard.stdout is not None
    supervisor = next(int(line.split()[1]) for line in guard.stdout if line.startswith("supervisor"))
    until(lambda: told.exists() and told.read_text().count("\n") == 1)
    yield guard, supervisor, [int(pid) for pid in told.read_text().split()]
    guard.kill()
    guard.wait()


Guarded = tuple[subprocess.Popen[str], int, list[int]]


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP])
def test_what_a_process_manager_sends_stops_everything_and_hands_on_the_status(guarded: Guarded, signum: int) -> None:
    guard, _supervisor, children = guarded
    guard.send_signal(signum)
    assert guard.wait(15) == 7
    assert not any(lives(pid) for pid in children)


def test_ctrl_c_stops_everything(guarded: Guarded) -> None:
    guard, _supervisor, children = guarded
    os.killpg(guard.pid, signal.SIGINT)
    assert guard.wait(15) == 7
    assert not any(lives(pid) for pid in children)


def test_killing_the_supervisor_leaves_nothing_behind(guarded: Guarded) -> None:
    guard, supervisor, children = guarded
    os.kill(supervisor, signal.SIGKILL)
    assert guard.wait(15) == 128 + signal.SIGKILL
    assert not any(lives(pid) for pid in children)


def test_killing_the_guard_leaves_nothing_behind(guarded: Guarded) -> None:
    guard, supervisor, children = guarded
    guard.kill()
    until(lambda: not lives(supervisor), 15)
    until(lambda: not any(lives(pid) for pid in children), 15)


def test_a_signal_during_a_signal_does_not_wait_for_the_first_one() -> None:
    """Ctrl-C reaches the supervisor from the terminal and from the guard: the second comes while the first is told."""
    session = Session.__new__(Session)
    session.supervisor = Supervisor()

    def told_twice() -> None:
        with session.supervisor.stopping._cond:  # type: ignore[attr-defined]
            session._told_to_stop()

    thread = threading.Thread(target=told_twice, daemon=True)
    thread.start()
    thread.join(5)
    assert not thread.is_alive()
    assert session._told
