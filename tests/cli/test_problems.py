"""One line on stderr, nothing on stdout, and a status that tells the truth."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from lakemirror import __main__
from lakemirror.api import Api
from lakemirror.errors import Unreachable
from lakemirror.settings import API, Settings
from tests.cli.answers import a_mirror, a_page
from tests.cli.speaking import KEY, StandIn, Terminal


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, 2), (413, 2), (401, 3), (403, 3), (404, 4), (409, 5), (412, 5), (429, 6), (500, 6), (502, 6), (503, 6)],
)
def test_each_refusal_has_its_status_and_the_apis_own_words(
    server: StandIn, run: Terminal, status: int, code: int
) -> None:
    server.says("GET", "/repositories/lake/mirrors", {"message": "tom may not do\nthat"}, status=status)
    done = run("mirror", "list", "--repository", "lake", "--json")
    assert (done.exit_code, done.stdout) == (code, "")
    assert done.stderr == "lakemirror: tom may not do that\n"


def test_a_hint_follows_the_message(server: StandIn, run: Terminal) -> None:
    server.says("GET", "/mirrors", {"message": "no such region", "hint": "Use eu-west-1"}, status=400)
    assert run("mirror", "list").stderr == "lakemirror: no such region. Use eu-west-1\n"


@pytest.mark.parametrize(("status", "code"), [(200, 6), (404, 6), (502, 6), (401, 3)])
def test_another_server_is_told_from_ours(server: StandIn, run: Terminal, status: int, code: int) -> None:
    server.says("GET", "/mirrors", b"<html>Welcome to nginx</html>", status=status)
    done = run("mirror", "list")
    assert done.exit_code == code
    assert "not as LakeMirror does" in done.stderr and "nginx" not in done.stderr


@pytest.mark.parametrize("command", [("list",), ("show", "lake-eu")])
def test_a_server_without_a_list_of_all_mirrors_is_told(run: Terminal, command: tuple[str, ...]) -> None:
    done = run("mirror", *command)
    assert done.exit_code == 4
    assert "has no list of all mirrors" in done.stderr and "--repository" in done.stderr


def test_the_key_is_not_taken_elsewhere(server: StandIn, run: Terminal) -> None:
    server.says("GET", "/mirrors", {}, status=302)
    done = run("mirror", "list")
    assert done.exit_code == 6
    assert "redirects to https://elsewhere.example.com/" in done.stderr


def test_nobody_there_is_said_in_few_words(run: Terminal) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        done = run("mirror", "list", "--url", url)
    assert (done.exit_code, done.stderr) == (6, f"lakemirror: {url} can't be reached: Connection refused\n")


def test_what_was_dropped_is_sent_again_under_the_same_key(server: StandIn, run: Terminal) -> None:
    server.says("POST", "/repositories/lake/mirrors/lake-eu/pause", a_mirror())
    server.drops = 1
    assert run("mirror", "pause", "lake-eu", "--repository", "lake").exit_code == 0
    assert run("mirror", "pause", "lake-eu", "--repository", "lake").exit_code == 0
    first, again, other = (asked.headers["Idempotency-Key"] for asked in server.asked)
    assert first == again != other


def test_a_deletion_that_was_dropped_is_not_sent_again(server: StandIn) -> None:
    server.drops = 1
    with pytest.raises(Unreachable, match="dropped"):
        Api(Settings(server.url, "k", "s"), API).delete("/repositories/lake/mirrors/lake-eu")
    assert len(server.asked) == 1


def test_the_secret_is_sent_and_never_shown(server: StandIn, run: Terminal) -> None:
    server.says("GET", "/mirrors", {"message": "wrong access key id or secret"}, status=401)
    done = run("mirror", "list")
    assert server.asked[0].headers["Authorization"].startswith("Basic ")
    assert KEY["LAKEMIRROR_SECRET_ACCESS_KEY"] not in done.output


def test_an_interrupted_command_ends_as_shells_expect(
    server: StandIn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lakemirror.api.Api.get", interrupted)
    assert _main(monkeypatch, server.url, "mirror", "list") == 130


def test_the_installed_command_ends_with_the_same_statuses(
    server: StandIn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server.says("GET", "/mirrors", a_page())
    assert _main(monkeypatch, server.url, "mirror", "list") in (None, 0)
    assert _main(monkeypatch, server.url, "mirror", "show", "lake-eu") == 4
    assert _main(monkeypatch, server.url, "mirror", "paint") == 2
    assert "lakemirror: there is no mirror 'lake-eu'" in capsys.readouterr().err


def _main(monkeypatch: pytest.MonkeyPatch, url: str, *arguments: str) -> object:
    for name, value in {"LAKEMIRROR_URL": url, **KEY}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", ["lakemirror", *arguments])
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    return ended.value.code


def test_it_starts_as_a_program_of_its_own(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-P", "-m", "lakemirror", "mirror", "list"]
    done = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": str(root)}, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("lakemirror: nothing says the url: set LAKEMIRROR_URL")
