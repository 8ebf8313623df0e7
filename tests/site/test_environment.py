"""Preparing the environment: stamps, Java, ports, and one line for what is in the way."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from launcher import environment, java, ports, test
from launcher.console import Problem
from launcher.processes import Failed


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one stage of requirements and an empty environment."""
    (tmp_path / "requirements").mkdir()
    (tmp_path / ".venv").mkdir()
    (tmp_path / "requirements" / "web.txt").write_text("django==5.2.19 --hash=sha256:00\n")
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    monkeypatch.setattr(environment, "VENV", tmp_path / ".venv")
    return tmp_path


class Runs:
    """Stands for running programs: remembers the commands, fails with the given output if there is one."""

    def __init__(self, failure: str = "") -> None:
        self.failure = failure
        self.commands: list[list[str]] = []

    def __call__(self, command: list[str], env: dict[str, str], **more: Any) -> str:
        self.commands.append(command)
        if self.failure:
            raise Failed(self.failure, "pip")
        return ""


def test_a_stage_is_installed_once_with_hashes_checked(place: Path) -> None:
    runs = Runs()
    for _ in range(2):
        environment.install(runs, "web", megabytes=0)
    assert len(runs.commands) == 1
    assert {"--require-hashes", "--no-deps"} <= set(runs.commands[0])


def test_a_changed_lock_is_installed_again(place: Path) -> None:
    runs = Runs()
    environment.install(runs, "web", megabytes=0)
    (place / "requirements" / "web.txt").write_text("django==5.2.20 --hash=sha256:00\n")
    environment.install(runs, "web", megabytes=0)
    assert len(runs.commands) == 2


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("x: Temporary failure in name resolution\nERROR: No matching distribution", "can't reach the package index"),
        ("ERROR: Could not find a version (from versions: none)", "can't reach the package index"),
        ("OSError: [Errno 28] No space left on device", "no space left on the disk"),
        ("note\nERROR: THESE PACKAGES DO NOT MATCH THE HASHES\nmore", "THESE PACKAGES DO NOT MATCH THE HASHES"),
    ],
)
def test_what_pip_says_becomes_one_line_and_nothing_counts_as_installed(place: Path, output: str, words: str) -> None:
    with pytest.raises(Problem, match=words) as caught:
        environment.install(Runs(output), "web", megabytes=0)
    assert "\n" not in str(caught.value)
    assert not environment.installed("web")


def test_a_disk_that_is_too_full_is_told_with_both_sizes(place: Path) -> None:
    with pytest.raises(Problem, match=r"999999999 MB are needed .* MB are free"):
        environment.install(Runs(), "web", megabytes=999_999_999)


def fake_java(folder: Path, version: str) -> Path:
    """A program that describes itself as this Java; its home."""
    java_file = folder / "bin" / "java"
    java_file.parent.mkdir(parents=True)
    java_file.write_text(
        f"#!/bin/sh\necho '    java.home = {folder}' >&2\necho '    java.specification.version = {version}' >&2\n"
    )
    java_file.chmod(0o755)
    return folder


def test_java_home_comes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "home", "21")))
    monkeypatch.setenv("PATH", f"{fake_java(tmp_path / 'path', '17')}/bin")
    assert java.system_home() == tmp_path / "home"


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "1.8")))
    monkeypatch.setenv("PATH", f"{fake_java(tmp_path / 'path', '17')}/bin")
    assert java.system_home() == tmp_path / "path"


def test_no_java_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert java.system_home() is None


@pytest.mark.parametrize(("version", "dropped"), [("17", 1), ("23", 1), ("24", 2), ("25", 2)])
def test_the_wrapper_drops_only_what_a_java_may_lack(
    version: str, dropped: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    echo = tmp_path / "echo"
    asked = f"echo '    java.home = /j' >&2; echo '    java.specification.version = {version}' >&2"
    echo.write_text(
        f'#!/bin/sh\n[ "$1" = -version ] || [ "$2" = -version ] && {{ {asked}; exit; }}\nprintf "%s\\n" "$@"\n'
    )
    echo.chmod(0o755)
    monkeypatch.setattr(java, "VENV", tmp_path)
    wrapper = java._wrap(echo) / "bin" / "java"
    absent = ["--add-modules=jdk.incubator.vector", "--add-opens=java.base/sun.security.action=ALL-UNNAMED"]
    kept = ["-Xmx1g", "--add-opens=java.base/java.lang=ALL-UNNAMED", "-Dname=two words", "Main"]
    said = java.subprocess.run([wrapper, *absent, *kept], capture_output=True, text=True).stdout.splitlines()
    assert said == [*absent[dropped:], *kept]


def test_a_port_in_use_is_named_with_what_wants_it() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(
            Problem, match=rf"port {port} \(web\) can't be used on 127\.0\.0\.1: Address already in use"
        ):
            ports.require_free({"web": ("127.0.0.1", port)})


def test_a_port_base_that_is_no_number_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEMIRROR_PORT_BASE", "high")
    with pytest.raises(Problem, match="LAKEMIRROR_PORT_BASE"):
        ports.base()


def test_waiting_ends_when_everything_stops() -> None:
    assert not ports.wait(lambda: False, seconds=60, stop=lambda: True)


@pytest.mark.parametrize(
    ("argument", "place"),
    [
        ("core", "tests/core"),
        ("mirroring", "tests/mirroring"),
        ("tests/core", "tests/core"),
        ("tests/core/test_doubt.py", "tests/core/test_doubt.py"),
        ("-k", "-k"),
        (".", "."),
        ("no such folder", "no such folder"),
    ],
)
def test_folders_stand_for_their_tests(argument: str, place: str) -> None:
    assert test._place(argument) == place
