"""The command out of a checkout, and what is installed with it elsewhere."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from launcher import ROOT, cli

from lakemirror.app import mirror

REPOSITORY = Path(__file__).resolve().parents[2]


def test_every_folder_of_the_command_is_installed_with_it() -> None:
    named = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = (module.parent.relative_to(REPOSITORY) for module in (REPOSITORY / "lakemirror").rglob("__init__.py"))
    assert sorted(named) == sorted(".".join(folder.parts) for folder in folders)


def becomes(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[list[str], dict[str, str]]:
    """The command line and the environment of what scripts/lakemirror becomes."""
    became: list[Any] = []
    monkeypatch.setattr("os.execve", lambda path, command, env: became.append((command, env)))
    monkeypatch.setattr("launcher.environment.make_venv", lambda run: None)
    cli.main(list(arguments))
    return became[0]


def test_the_script_becomes_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("launcher.environment.installed", lambda stage: True)
    command, env = becomes(monkeypatch, "mirror", "list", "--json")
    assert command[1:] == ["-P", "-m", "lakemirror", "mirror", "list", "--json"]
    assert env["PYTHONPATH"] == str(ROOT)
    assert capsys.readouterr() == ("", "")


def test_what_is_installed_first_is_not_said_to_programs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stages: list[str] = []
    monkeypatch.setattr("launcher.environment.installed", lambda stage: False)
    monkeypatch.setattr("launcher.environment.install", lambda run, stage, megabytes: stages.append(stage))
    becomes(monkeypatch, "mirror", "list", "--json")
    shown = capsys.readouterr()
    assert (stages, shown.out) == (["cli"], "")
    assert "installing requirements/cli.txt" in shown.err


def test_what_the_package_asks_for_is_what_is_pinned() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    pinned = re.findall(r"^(\w+)", (REPOSITORY / "requirements" / "cli.in").read_text(), flags=re.MULTILINE)
    assert sorted(re.findall(r"^(\w+)", "\n".join(project["dependencies"]), flags=re.MULTILINE)) == sorted(pinned)


def test_the_page_about_the_command_tells_of_every_part_of_it() -> None:
    page = (REPOSITORY / "docs" / "cli.md").read_text()
    for name, command in mirror.commands.items():
        assert f"lakemirror mirror {name}" in page, name
        for option in command.params:
            for spelled in option.opts if option.param_type_name == "option" else ():
                assert spelled in page, f"{name} {spelled}"
