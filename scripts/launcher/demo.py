"""The demo: what is the run's own when no configuration is given."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
from typing import ClassVar

from launcher import PYTHON, VAR, ports
from launcher.console import Problem, console
from launcher.processes import Process
from launcher.session import Session

REGIONS = ("us-east-1", "eu-west-1", "ap-southeast-2")  # as in sandbox/layout.py

EXPORTED_TO, DENIED = ("company-bucket", "partner-bucket"), "partner-bucket/orders"  # as in demo_setup
COPIED_BY_US = "eu-west-1:us-east-1"
"""The way of the managed mirror, which no store takes."""


class Demo(Session):
    """Three regions in miniature beside LakeMirror. They live in memory, so each run begins afresh."""

    stages: ClassVar[dict[str, str]] = {
        "sandbox": "Three regions to play with",
        "workers": "Controller and workers",
        "spark": "Spark",
        "mirror": "Mirrors and exports",
    }

    def __init__(self, options: argparse.Namespace) -> None:
        base = ports.base()
        used = {"web": 8, "sandbox": 100, "Spark": 120}
        for number, region in enumerate(REGIONS, start=1):
            used |= {f"lakeFS {region}": 100 + number, f"S3 {region}": 110 + number}
        ports.require_free({what: ("127.0.0.1", base + number) for what, number in used.items()})
        super().__init__(options)
        self.folder = VAR / "demo"
        self.sandbox_folder = VAR / "sandbox"
        self.secrets = self._secrets()
        self.env.pop("LAKEMIRROR_CONFIG", None)  # what stands without one is the demo
        self.env |= {
            "REPLICATION_LISTEN_ADDRESS": os.environ.get("REPLICATION_LISTEN_ADDRESS") or f"127.0.0.1:{base + 8}",
            "REPLICATION_MIRRORS_DATABASE_SQLITE_PATH": str(self.folder / "lakemirror.sqlite3"),
            "REPLICATION_AUTH_ENCRYPT_SECRET_KEY": self.secrets["key"],
        }
        for region in REGIONS:
            self.env[f"REPLICATION_HOOKS_SECRETS_{region.upper().replace('-', '_')}"] = self.secrets["hook"]

    def _secrets(self) -> dict[str, str]:
        """This checkout's own password and keys for the demo, made once."""
        self.folder.mkdir(exist_ok=True)
        path = self.folder / "secrets.json"
        if path.exists():
            earlier: dict[str, str] = json.loads(path.read_text())
            return earlier
        made = {
            "password": secrets.token_urlsafe(9),
            "access_key_id": "AKIA" + secrets.token_hex(8).upper(),
            "secret_access_key": secrets.token_urlsafe(30),
            "key": secrets.token_hex(32),
            "hook": secrets.token_hex(20),
        }
        fresh = path.with_suffix(".tmp")
        fresh.touch(mode=0o600)
        fresh.write_text(json.dumps(made))
        fresh.replace(path)
        return made

    def prepare(self) -> None:
        self._begin_afresh()
        self.read_config()
        self.start_web()
        names = ("PASSWORD", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY")
        settings = {f"LAKEMIRROR_ADMIN_{name}": self.secrets[name.lower()] for name in names}
        self.manage("begin", env=settings | {"LAKEMIRROR_ADMIN_USERNAME": "admin"})

    def _begin_afresh(self) -> None:
        """Forget what the last run's regions held, as they have forgotten it."""
        console.say("the demo begins afresh: its regions live in memory (your own with --config FILE are resumed)")
        for old in self.folder.glob("lakemirror.sqlite3*"):
            old.unlink()
        shutil.rmtree(self.sandbox_folder, ignore_errors=True)

    def _sandbox(self) -> None:
        command = [str(PYTHON), "-m", "sandbox", "up", "--dir", str(self.sandbox_folder)]
        command += [*(f"--extra-bucket={name}" for name in EXPORTED_TO), "--deny", DENIED]
        command += ["--unreplicated", COPIED_BY_US]
        command += ["--seed", str(self.options.seed)] if self.options.seed is not None else []
        env = self.env | {
            "LAKEMIRROR_SANDBOX_HOOK_URL": f"http://127.0.0.1:{ports.base() + 8}/hooks/lakefs",
            "LAKEMIRROR_SANDBOX_HOOK_SECRET": self.secrets["hook"],
        }
        self.supervisor.keep(Process("sandbox", command, env, last=True, on_restart=self._sandbox_lost))

    def _sandbox_lost(self) -> None:
        if self.status.state("sandbox") == "ready":
            console.say("the sandbox began again with nothing: stop and run again for a fresh demo")

    def login(self) -> str:
        keys = f"{self.secrets['access_key_id']}:{self.secrets['secret_access_key']}"
        return f"sign in as admin with the password {self.secrets['password']} (API: curl -u {keys})"

    def install_more(self) -> None:
        self.status.set("sandbox", "running")
        self.install("sandbox", "the demo's regions", megabytes=100)

    def afterwards(self) -> None:
        """The regions start once the page answers, so that none of their webhooks is lost; then the mirrors."""
        self._sandbox()
        ready = self.sandbox_folder / "sandbox.json"
        if not ports.wait(ready.exists, seconds=120, stop=lambda: self.stopping) and not self.stopping:
            raise Problem("the sandbox did not start within 120 s: see its lines above")
        self.status.set("sandbox", "ready")
        self.status.set("mirror", "running")
        for line in self.manage("demo_setup").splitlines():
            console.say(line)
        self.status.set("mirror", "ready")
