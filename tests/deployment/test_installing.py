"""The files by which LakeMirror is installed start the processes that there are."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from deployment import config
from tests.deployment.test_config import KEYS, changed

DEPLOY = config.BASE_DIR / "deploy"
ROLES = {"prepare", "web", "controller", "worker", "spark-worker", "spark"}


def process(role: str, folder: Path, **told: Any) -> subprocess.CompletedProcess[str]:
    """What deploy/process says in this role, with a database of its own."""
    file = folder / "lakemirror.yaml"
    file.write_text(yaml.safe_dump(changed("mirrors_database", {"type": "sqlite"}) | KEYS))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LAKEMIRROR_", "REPLICATION_"))}
    environ = kept | {"LAKEMIRROR_CONFIG": str(file), "LAKEMIRROR_VAR": str(folder)} | told
    environ |= {"LAKEMIRROR_VENV": sys.prefix, "DJANGO_SETTINGS_MODULE": "lakemirror_site.settings"}
    return subprocess.run([DEPLOY / "process", *role.split()], env=environ, capture_output=True, text=True)


def test_the_database_is_prepared_once_or_more(tmp_path: Path) -> None:
    admin = {"LAKEMIRROR_ADMIN_USERNAME": "ada", "LAKEMIRROR_ADMIN_PASSWORD": "a long password"}
    for _ in range(2):
        done = process("prepare", tmp_path, **admin)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        assert done.stdout.splitlines()[-1] == "the database is ready"
    assert process("manage ensure_admin --exists", tmp_path).stdout == "yes\n"


def test_an_unknown_role_is_told_and_a_wrong_configuration_too(tmp_path: Path) -> None:
    done = process("weeb", tmp_path)
    assert (done.returncode, done.stderr) == (2, "lakemirror: there is no role 'weeb'\n")
    done = process("prepare", tmp_path, REPLICATION_LISTEN_ADDRESS="here")
    assert done.returncode != 0 and "listen_address" in done.stderr and done.stderr.count("\n") == 1


def test_a_database_that_is_away_is_told_in_one_line(tmp_path: Path) -> None:
    away = {"TYPE": "postgres", "POSTGRES_CONNECTION_STRING": "host=127.0.0.1 port=1 user=nobody dbname=none"}
    done = process("prepare", tmp_path, **{f"REPLICATION_MIRRORS_DATABASE_{name}": said for name, said in away.items()})
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("CommandError: the database refuses the connection: ") and "port 1 " in done.stderr


@pytest.mark.parametrize("name", ["source", "destination"])
def test_the_examples_are_complete_and_those_of_the_chart_are_the_same_but_for_what_a_secret_holds(name: str) -> None:
    told = yaml.safe_load((config.BASE_DIR / "docs" / "examples" / f"{name}.yaml").read_text())
    assert config.parse(told | KEYS).region == told["region"]
    chart = yaml.safe_load((DEPLOY / "helm" / "examples" / f"{name}.yaml").read_text())["replication"]["config"]
    del told["auth"], told["mirrors_database"]["postgres"]
    assert chart | {"logging": told["logging"]} == told


def test_compose_starts_each_role() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    assert {one["command"][0] for name, one in services.items() if name != "database"} == ROLES


@pytest.mark.parametrize(
    "files", [["helm/templates/deployments.yaml"], ["systemd/lakemirror.target", "systemd/lakemirror@.service"]]
)
def test_other_ways_start_each_role(files: list[str]) -> None:
    text = "".join((DEPLOY / file).read_text() for file in files)
    assert {role for role in ROLES if re.search(rf'(["@-]|process ){role}(["\s.])', text)} == ROLES


def test_every_role_is_one_that_the_script_knows() -> None:
    text = (DEPLOY / "process").read_text()
    assert set(re.findall(r"^  ([a-z-]+)\)", text, re.MULTILINE)) == ROLES | {"manage"}
