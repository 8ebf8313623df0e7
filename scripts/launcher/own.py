"""A run with `--config FILE`: the user's own lakeFS installations and stores."""

from __future__ import annotations

import argparse
import os
import sys
from getpass import getpass
from pathlib import Path
from typing import ClassVar

from launcher import ports
from launcher.console import Problem, console
from launcher.session import Session


class Own(Session):
    """The user's own installations and stores, from a configuration file; what was there is resumed."""

    stages: ClassVar[dict[str, str]] = {"workers": "Controller and workers", "spark": "Spark"}

    def __init__(self, options: argparse.Namespace) -> None:
        path = Path(options.config).resolve()
        if not path.is_file():
            raise Problem(f"there is no configuration file {options.config}")
        super().__init__(options)
        self.env["LAKEMIRROR_CONFIG"] = str(path)
        self._login = "sign in as you did before"

    def prepare(self) -> None:
        self.read_config()
        host, _, port = self.facts["listen_address"].rpartition(":")
        addresses = {"web": (host or "0.0.0.0", int(port))}
        if not self.own_spark:
            addresses["Spark"] = ("127.0.0.1", self.spark_port)
        ports.require_free(addresses, otherwise="set another listen_address (for Spark: LAKEMIRROR_PORT_BASE)")
        self.manage("migrate", "--verbosity", "0", "--no-input")
        self._first_administrator()
        self.start_web()

    def _first_administrator(self) -> None:
        """From the environment, or asked for once; nothing when somebody can sign in already."""
        if self.manage("ensure_admin", "--exists").strip() == "yes":
            console.say("resuming: mirrors, users and progress are as the last run left them")
            return
        name = os.environ.get("LAKEMIRROR_ADMIN_USERNAME") or _asked("Name of the first administrator", "admin")
        password = os.environ.get("LAKEMIRROR_ADMIN_PASSWORD") or _asked_secretly(f"Password of {name}: ")
        key = ["--access-key"] if os.environ.get("LAKEMIRROR_ADMIN_ACCESS_KEY_ID") else []
        settings = {"LAKEMIRROR_ADMIN_USERNAME": name, "LAKEMIRROR_ADMIN_PASSWORD": password}
        self.manage("ensure_admin", *key, env=settings)
        self._login = f"sign in as {name} with the password that you gave"

    def login(self) -> str:
        return self._login


def _asked(question: str, default: str) -> str:
    """An answer from the terminal; the default where there is none."""
    return (input(f"{question} [{default}]: ").strip() if sys.stdin.isatty() else "") or default


def _asked_secretly(question: str) -> str:
    """A password from the terminal, not shown."""
    if not sys.stdin.isatty():
        raise Problem("nobody can sign in yet: set LAKEMIRROR_ADMIN_USERNAME and LAKEMIRROR_ADMIN_PASSWORD")
    return getpass(question)
