"""The same commands against the application itself, on fake installations."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from mirrors.models import Mirror
from rbac.models import User
from tests.cli.speaking import Terminal
from tests.mirrors.factories import make_company
from tests.mirrors.harness import Deployment

pytestmark = pytest.mark.django_db
IN_LAKE = ("lake-eu", "--repository", "lake")
TerminalOf = Callable[[User], Terminal]


@pytest.fixture
def olgas(terminal_of: TerminalOf, owner: User) -> Terminal:
    """An administrator's terminal."""
    return terminal_of(owner)


@pytest.fixture
def work_goes_on(lm: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the command waits, the deployment works."""
    monkeypatch.setattr("time.sleep", lambda seconds: lm.work(rounds=1))


def test_mirrors_in_every_state_are_listed_and_shown(olgas: Terminal) -> None:
    for mirror in make_company(datetime.now(UTC)).values():
        source = ("--repository", mirror.source.name)
        shown = olgas("mirror", "show", mirror.name, *source)
        assert (shown.exit_code, shown.stderr) == (0, "")
        assert shown.stdout.startswith(f"{mirror.name}: ") and "None" not in shown.stdout
        listed = olgas("mirror", "list", *source, "--source-region", mirror.source.region)
        assert listed.stdout.startswith("1 mirror: ") and mirror.name in listed.stdout


def test_a_mirror_is_made_followed_and_deleted(lm: Deployment, olgas: Terminal, work_goes_on: None) -> None:
    Mirror.objects.all().delete()
    commit = lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    place = ("--region", "eu-west-1", "--storage-namespace", "s3://dst/lake")
    made = olgas("mirror", "create", *IN_LAKE, *place, "--wait")
    assert (made.exit_code, made.stdout.splitlines()[0]) == (0, "lake-eu: Up to date"), made.stderr
    assert lm.head() == commit

    newer = lm.lake.commit(files={"b": b"2"})
    lm.arrive()
    assert olgas("mirror", "sync", *IN_LAKE, "--wait").exit_code == 0
    assert lm.head() == newer

    assert "Paused" in olgas("mirror", "pause", *IN_LAKE).stdout
    lm.lake.commit(files={"c": b"3"})
    lm.arrive()
    assert olgas("mirror", "sync", *IN_LAKE, "--wait").exit_code == 1
    assert olgas("mirror", "resume", *IN_LAKE).exit_code == 0

    assert olgas("mirror", "delete", *IN_LAKE, typed="lake-eu\n").exit_code == 0
    assert olgas("mirror", "show", *IN_LAKE).exit_code == 4


def test_a_check_finds_what_was_lost(lm: Deployment, head: str, olgas: Terminal, work_goes_on: None) -> None:
    well = olgas("mirror", "validate", *IN_LAKE, "--branch", "main", "--wait")
    assert (well.exit_code, "0 problems" in well.stdout) == (0, True), well.output
    lm.arrive(next(iter(lm.lake.trees[head].values())).address)
    lost = olgas("mirror", "validate", *IN_LAKE, "--commit", head, "--wait")
    assert (lost.exit_code, "1 problem." in lost.stdout) == (1, True), lost.output


def test_who_lacks_a_right_is_told_which(
    lm: Deployment, terminal_of: TerminalOf, teammate: User, outsider: User
) -> None:
    denied = terminal_of(teammate)("mirror", "pause", *IN_LAKE)
    assert (denied.exit_code, denied.stdout) == (3, "")
    assert "tom may not fs:OperateMirror on arn:lakefs:fs:::repository/lake" in denied.stderr
    assert terminal_of(outsider)("mirror", "show", *IN_LAKE).exit_code == 3


def test_a_wrong_key_is_told(lm: Deployment, olgas: Terminal) -> None:
    olgas.env["LAKEMIRROR_SECRET_ACCESS_KEY"] = "wrong"
    done = olgas("mirror", "show", *IN_LAKE)
    assert (done.exit_code, done.stderr.startswith("lakemirror: wrong access key id or secret")) == (3, True)


def test_the_apis_own_words_reach_the_terminal(lm: Deployment, olgas: Terminal) -> None:
    place = ("--region", "mars", "--storage-namespace", "s3://dst/x")
    done = olgas("mirror", "create", "lake-mars", "--repository", "lake", *place)
    assert (done.exit_code, "unknown region 'mars'" in done.stderr) == (2, True)
    taken = ("--region", "eu-west-1", "--storage-namespace", "s3://dst/other")
    assert olgas("mirror", "create", *IN_LAKE, *taken).exit_code == 5
