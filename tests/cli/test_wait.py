"""Waiting: until when, what is shown meanwhile, and when it is no use."""

from __future__ import annotations

import io

import pytest

from lakemirror import wait
from lakemirror.errors import TimedOut, Unreachable
from lakemirror.wait import Look, wait_until_done
from tests.cli.answers import BEHIND, a_branch, a_check, a_mirror
from tests.cli.speaking import StandIn, Terminal

LAKE_EU = "/repositories/lake/mirrors/lake-eu"
IN_LAKE = ("lake-eu", "--repository", "lake")
ASKED, LOOKED, LATER = ("2026-11-21T12:25:00.000Z", "2026-11-21T12:25:01.000Z", "2026-11-21T12:26:00.000Z")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits."""
    monkeypatch.setattr(wait, "FIRST_PAUSE", 0.0)


def sync(server: StandIn, run: Terminal, *mirrors: dict[str, object]) -> tuple[int, str, str]:
    """What becomes of `sync --wait` when the mirror goes through these states."""
    server.says("GET", LAKE_EU, a_mirror(as_of=ASKED), *mirrors)
    server.says("POST", f"{LAKE_EU}/sync", {"message": "on its way"}, status=202)
    done = run("mirror", "sync", *IN_LAKE, "--wait", "--timeout", "30")
    return done.exit_code, done.stdout, done.stderr


def test_up_to_date_before_the_look_says_nothing(server: StandIn, run: Terminal) -> None:
    before = a_mirror(source_looked_at="2026-11-21T12:24:59.999Z")
    behind = a_mirror(source_looked_at=LOOKED, branches=[a_branch(**BEHIND | {"oldest_pending_seen_at": LOOKED})])
    status, shown, told = sync(server, run, before, behind, a_mirror(source_looked_at=LATER))
    assert (status, shown.splitlines()[0]) == (0, "lake-eu: Up to date")
    assert [line.split(". ")[0] for line in told.splitlines()] == [
        "Branches caught up: 0 of 1",
        "Branches caught up: 0 of 1",
        "Branches caught up: 1 of 1",
    ]


def test_what_the_source_got_since_is_not_waited_for(server: StandIn, run: Terminal) -> None:
    first = a_mirror(source_looked_at=LOOKED, branches=[a_branch(**BEHIND | {"oldest_pending_seen_at": LOOKED})])
    newer = a_mirror(source_looked_at=LATER, branches=[a_branch(**BEHIND | {"oldest_pending_seen_at": LATER})])
    assert sync(server, run, first, newer)[0] == 0


def test_a_branch_that_is_not_there_yet_is_waited_for(server: StandIn, run: Terminal) -> None:
    new = a_branch("new", mirror_head=None, pending_commits=1, oldest_pending_seen_at=LOOKED, status="Syncing")
    aside = a_branch("old", mirror_head=None, status="Gone at source")
    begun = a_mirror(source_looked_at=LOOKED, branches=[a_branch(), new, aside])
    status, _, told = sync(server, run, begun, a_mirror(source_looked_at=LOOKED))
    assert status == 0 and "1 of 2" in told


@pytest.mark.parametrize("state", ["Not proven", "Damaged"])
def test_a_head_that_is_not_proven_whole_is_waited_for(server: StandIn, run: Terminal, state: str) -> None:
    unsure = a_mirror(source_looked_at=LOOKED, status=state, branches=[a_branch(status=state, lag_seconds=None)])
    status, _, told = sync(server, run, unsure, a_mirror(source_looked_at=LOOKED))
    assert status == 0 and "0 of 1" in told


@pytest.mark.parametrize("state", ["Paused", "Damaged"])
def test_what_is_damaged_in_a_pause_is_not_waited_for(server: StandIn, run: Terminal, state: str) -> None:
    branches = [a_branch(status=state, lag_seconds=None)]
    stuck = a_mirror(source_looked_at=LOOKED, status=state, paused=True, branches=branches)
    assert sync(server, run, stuck)[0] == 1


@pytest.mark.parametrize("state", ["Stopped", "Frozen", "Paused", "Failed"])
def test_where_waiting_does_not_help_it_ends_with_one(server: StandIn, run: Terminal, state: str) -> None:
    behind = a_branch(**BEHIND | {"oldest_pending_seen_at": LOOKED})
    paused = state == "Paused"
    stuck = a_mirror(
        source_looked_at=LOOKED, status=state, paused=paused, reason="Somebody must act.", branches=[behind]
    )
    status, shown, told = sync(server, run, stuck)
    assert (status, shown) == (1, "")
    assert told.endswith("lakemirror: lake-eu: waiting won't help. Somebody must act.\n")


def test_a_blocked_mirror_is_waited_for_until_the_time_is_out(server: StandIn, run: Terminal) -> None:
    behind = a_branch(**BEHIND | {"oldest_pending_seen_at": LOOKED})
    blocked = a_mirror(source_looked_at=LOOKED, status="Blocked", reason="An object is missing.", branches=[behind])
    server.says("GET", LAKE_EU, a_mirror(as_of=ASKED), blocked)
    server.says("POST", f"{LAKE_EU}/sync", {"message": "on its way"}, status=202)
    done = run("mirror", "sync", *IN_LAKE, "--timeout", "0")
    assert (done.exit_code, done.stdout) == (124, "")
    assert done.stderr.endswith("not done after 0. An object is missing.\n")


def test_a_new_mirror_is_waited_for_from_when_it_was_made(server: StandIn, run: Terminal) -> None:
    made = a_mirror(status="New", created_at=ASKED, branches=[], source_looked_at=None)
    server.says("POST", "/repositories/lake/mirrors", made, status=201)
    server.says("GET", LAKE_EU, made, a_mirror(created_at=ASKED, source_looked_at=LOOKED))
    place = ("--region", "eu-west-1", "--storage-namespace", "s3://dst/lake-eu")
    done = run("mirror", "create", *IN_LAKE, *place, "--wait")
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, "lake-eu: Up to date")


@pytest.mark.parametrize(("problems", "status"), [(0, 0), (2, 1)])
def test_a_check_ends_with_one_if_it_found_problems(server: StandIn, run: Terminal, problems: int, status: int) -> None:
    ended = {"state": "done", "metaranges_left": 0, "ranges": 31, "ranges_done": 31, "entries": 20114}
    server.says("POST", f"{LAKE_EU}/validate", a_check(), status=202)
    server.says(
        "GET",
        f"{LAKE_EU}/validations/3",
        a_check(state="running"),
        a_check(**ended | {"problems": problems, "ended_at": "2026-11-21T12:25:40.000Z"}),
    )
    done = run("mirror", "validate", *IN_LAKE, "--branch", "main", "--wait")
    words = "31 ranges and 20,114 entries checked within 40 s"
    assert done.exit_code == status
    assert done.stdout == (f"Check 3 of branch main by etag: done. {words}: {problems} problems.\n")


def test_a_check_that_somebody_stopped_proves_nothing(server: StandIn, run: Terminal) -> None:
    stopped = {"state": "stopped", "metaranges_left": 0, "ranges": 31, "ranges_done": 4, "entries": 2114}
    server.says("POST", f"{LAKE_EU}/validate", a_check(), status=202)
    server.says("GET", f"{LAKE_EU}/validations/3", a_check(**stopped, ended_at="2026-11-21T12:25:40.000Z"))
    done = run("mirror", "validate", *IN_LAKE, "--branch", "main", "--wait")
    assert done.exit_code == 1
    assert "by etag: stopped. 4 ranges and 2,114 entries checked" in done.stdout


@pytest.mark.parametrize("text", ["soon", "-1", "10 m", "1w"])
def test_a_timeout_is_a_length_of_time(run: Terminal, text: str) -> None:
    done = run("mirror", "sync", "lake-eu", "--timeout", text)
    assert done.exit_code == 2


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("1.5s", 1.5), ("10m", 600), ("2h", 7200), ("1d", 86400)])
def test_lengths_of_time(text: str, seconds: float) -> None:
    assert wait.duration(text) == seconds


def test_a_restart_of_the_server_is_sat_out(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([Unreachable("away"), Look(True, 1, 1, "there")])

    def look() -> Look:
        seen = next(looks)
        if isinstance(seen, Exception):
            raise seen
        return seen

    wait_until_done(look, "Work", None)


def test_a_server_that_stays_away_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait, "AWAY_SECONDS", 0.0)

    def look() -> Look:
        raise Unreachable("away")

    with pytest.raises(Unreachable):
        wait_until_done(look, "Work", None)


def test_a_terminal_gets_a_bar_on_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    looks = iter([Look(False, 3, 8, "at [work]"), Look(True, 8, 8, "done")])
    wait_until_done(lambda: next(looks), "Ranges checked", None)
    assert "8 of 8" in screen.getvalue() and "Ranges checked" in screen.getvalue()


def test_a_wait_that_is_over_says_how_far_it_came() -> None:
    with pytest.raises(TimedOut, match=r"^not done after 0. Half of it$"):
        wait_until_done(lambda: Look(False, 1, 2, "Half of it"), "Work", 0)
