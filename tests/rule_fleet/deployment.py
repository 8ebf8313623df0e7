"""LakeMirror as it is deployed: web, controller, several workers, Spark; and who asks its API."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import requests
import yaml

from sandbox.layout import ACCESS_KEY_ID, SECRET_ACCESS_KEY
from tests.fleet.fleet import ROOT, Member
from tests.rule_fleet import HOME, REGIONS, SABOTAGE
from tests.rule_fleet.layout import Group
from tests.rule_fleet.stores import Stores
from tests.spark.server import free_port

KEY_ID, SECRET, HOOK = "AKIARULESOAK", "a secret that only tests use", "what stores say to be heard"
API = "/service/replication/v1"
START_SECONDS = 180.0
WORKERS = 2
SHAKEN_SECONDS = 60.0
SMALL = 20
"""A link that has more objects than this to copy is copied by Spark."""


class Deployment:
    """The processes, on one database."""

    def __init__(self, folder: Path, database: str, stores: Stores) -> None:
        """`database`: a URL of PostgreSQL; "": SQLite."""
        self.folder, self.stores = folder, stores
        self.port = free_port()
        self.died: list[str] = []
        self.shaken: dict[str, float] = {}
        """When a process of a member was killed last."""
        self.env = self._environment(database)
        manage = [sys.executable, str(ROOT / "manage.py")]
        gunicorn = [sys.executable, "-m", "gunicorn", "-c", "python:lakemirror_site.gunicorn_settings"]
        self.web = self._member("web", [*gunicorn, "lakemirror_site.wsgi"], {})
        self.spark = self._member("spark", [sys.executable, "-m", "deployment.spark_server"], {})
        self.workers = [
            self._member(f"worker-{number}", [*manage, "qcluster"], {"Q_CLUSTER_NAME": HOME})
            for number in range(1, WORKERS + 1)
        ]
        self.workers.append(self._member("spark-worker", [*manage, "qcluster"], {"Q_CLUSTER_NAME": f"{HOME}-spark"}))
        self.controller = self._member("controller", [*manage, "controller"], {})

    @property
    def members(self) -> list[Member]:
        return [self.web, self.controller, self.spark, *self.workers]

    def _environment(self, database: str) -> dict[str, str]:
        file = self.folder / "lakemirror.yaml"
        file.write_text(yaml.safe_dump(json.loads(json.dumps(self._configuration(database)))))
        port = str(free_port())
        settings = "tests.rule_fleet.settings" if os.environ.get(SABOTAGE) else "lakemirror_site.settings"
        return {
            "DJANGO_SETTINGS_MODULE": settings,
            "LAKEMIRROR_CONFIG": str(file),
            "LAKEMIRROR_VAR": str(self.folder / "var"),
            "LAKEMIRROR_SPARK_PORT": port,
            "SPARK_REMOTE": f"sc://127.0.0.1:{port}",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT),
            "WEB_CONCURRENCY": "1",
            "LAKEMIRROR_ADMIN_USERNAME": "ada",
            "LAKEMIRROR_ADMIN_PASSWORD": "a password that only tests use",
            "LAKEMIRROR_ADMIN_ACCESS_KEY_ID": KEY_ID,
            "LAKEMIRROR_ADMIN_SECRET_ACCESS_KEY": SECRET,
        }

    def _configuration(self, database: str) -> dict[str, Any]:
        keys = {"access_key_id": ACCESS_KEY_ID, "secret_access_key": SECRET_ACCESS_KEY}
        stores = {
            region: {
                "region": "us-east-1",
                "endpoint": f"http://127.0.0.1:{gate.port}",
                "force_path_style": True,
                "credentials": keys,
            }
            for region, gate in self.stores.gates.items()
        }
        lakefs = f"http://127.0.0.1:{self.stores.lakefs_port}"
        postgres = {"type": "postgres", "postgres": {"connection_string": database}}
        return {
            "region": HOME,
            "organization_id": "rule-fleet",
            "serve_regions": list(REGIONS),
            "regional_endpoint": lakefs,
            "dst_endpoints": {region: lakefs for region in REGIONS if region != HOME},
            "mirrors_database": postgres if database else {"type": "sqlite"},
            "blockstore": {"type": "s3", "s3": stores[HOME]},
            "stores": stores,
            "auth": {"encrypt": {"secret_key": "a key that only tests use"}},
            "source_lakefs_access_key_id": ACCESS_KEY_ID,
            "source_lakefs_secret_access_key": SECRET_ACCESS_KEY,
            "listen_address": f"127.0.0.1:{self.port}",
            "hooks": {"secrets": dict.fromkeys(REGIONS, HOOK)},
            "workers": {"io": 3, "spark": 2},
            "replication": {"small_objects": SMALL},
        }

    def _member(self, name: str, command: list[str], told: Mapping[str, str]) -> Member:
        return Member(name, command, self.env | dict(told), self.folder / f"{name}.log")

    # --- beginning and end --------------------------------------------------------------------------------------------

    def start(self, groups: list[Group]) -> None:
        """Tables, processes, rules."""
        self._manage("migrate", "--verbosity", "0", "--no-input")
        self._manage("ensure_admin", "--access-key")
        for member in self.members:
            member.start()
        self._await()
        for group in groups:
            for name, source, targets in group.ways:
                of = {"region": source.region, "uri": source.uri}
                to = [{"region": one.region, "uri": one.uri, "workers": 8} for one in targets]
                self.asked("POST", "/rules", {"name": name, "source": of, "targets": to, **group.settings})

    def _manage(self, *command: str) -> None:
        told = [sys.executable, "manage.py", *command]
        done = subprocess.run(told, cwd=ROOT, env={**os.environ, **self.env}, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{command[0]}: {done.stdout[-500:]} {done.stderr[-2000:]}")

    def _await(self) -> None:
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            try:
                if requests.get(f"{self.url}/readyz", timeout=3).ok:
                    return
            except requests.RequestException:
                time.sleep(0.3)
        raise TimeoutError("the web process does not answer")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def revive(self, now: float) -> None:
        """Start again what was killed, or has ended, a moment ago. What nobody has touched must not end."""
        for member in self.members:
            if not member.alive and member.due <= now:
                if member.process is not None and time.monotonic() > self.shaken.get(member.name, 0.0) + SHAKEN_SECONDS:
                    self.died.append(f"{member.name} ended by itself: {member.process.poll()}")
                member.kill()
                member.start()

    def close(self) -> None:
        for member in self.members:
            member.kill()

    # --- what is asked of it ------------------------------------------------------------------------------------------

    def asked(self, method: str, path: str, body: Any = None) -> Any:
        """The answer of a call, as JSON; text where it is CSV. Raises RequestException, also for a refusal."""
        answer = requests.request(method, f"{self.url}{API}{path}", json=body, auth=(KEY_ID, SECRET), timeout=30)
        if not answer.ok:
            raise requests.HTTPError(f"{method} {path}: {answer.status_code} {answer.text[:500]}", response=answer)
        if "json" not in answer.headers.get("content-type", ""):
            return answer.text
        return answer.json()

    def rules(self) -> list[dict[str, Any]]:
        """All rules with their links."""
        found: list[dict[str, Any]] = self.asked("GET", "/rules?amount=100")["results"]
        return found

    def tell(self, region: str, records: list[dict[str, Any]]) -> None:
        """An event of a region's store. Raises RequestException."""
        told = {"Authorization": f"Bearer {HOOK}"}
        answer = requests.post(f"{self.url}/hooks/s3/{region}", json={"Records": records}, headers=told, timeout=10)
        answer.raise_for_status()
