"""Replaying recorded exchanges with real lakeFS servers against an in-process one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flask import Flask
from flask.testing import FlaskClient

from sandbox.faults import Service
from sandbox.guard import Guarded
from sandbox.lakefs.api import make_app
from sandbox.lakefs.blobs import RegionBlobs
from sandbox.lakefs.server import Server
from sandbox.layout import ACCESS_KEY_ID, SECRET_ACCESS_KEY
from sandbox.s3_backend import SandboxBackend, install

RUN = Path(__file__).resolve().parent.parent / "fixtures" / "lakefs-run"
Exchange = dict[str, Any]
ID = re.compile(r"[0-9a-f]{64}")


def transcript(name: str) -> list[Exchange]:
    """The exchanges of a recorded run."""
    found: list[Exchange] = json.loads((RUN / "http" / f"{name}.json").read_text())
    return found


def metadata_files() -> Iterator[tuple[str, bytes]]:
    """(id, content) of each metadata file of the recorded repository `lake`."""
    for path in sorted((RUN / "lake" / "_lakefs").iterdir()):
        yield path.name, path.read_bytes()


def repository_record() -> dict[str, Any]:
    """What the API told of `lake`: branches, tags, commits, logs."""
    found: dict[str, Any] = json.loads((RUN / "lake" / "repository.json").read_text())
    return found


class TwoServers:
    """A source and a destination over one store with the buckets of the recording."""

    def __init__(self) -> None:
        self.now = 1795251119.5
        self.backend: SandboxBackend = install("us-east-1", ["src-bucket", "dst-bucket"])
        self.store_faults = Service()
        self.servers: dict[str, Server] = {}
        self.clients: dict[str, FlaskClient] = {}
        for name in ("source", "destination"):
            server = Server(RegionBlobs(self.backend, self.store_faults), clock=lambda: self.now)
            app = make_app(server, access_key_id=ACCESS_KEY_ID, secret_access_key=SECRET_ACCESS_KEY)
            app.wsgi_app = Guarded(app.wsgi_app, Service(), "http://127.0.0.1:5555")  # type: ignore[method-assign]
            self.servers[name], self.clients[name] = server, _client(app)

    def send(self, exchange: Exchange, *, auth: tuple[str, str] | None = (ACCESS_KEY_ID, SECRET_ACCESS_KEY)) -> Answer:
        """Sends a recorded request; `<n bytes>` stands for any n bytes."""
        options: dict[str, Any] = {"query_string": exchange["query"], "auth": auth}
        request = exchange["request"]
        if isinstance(request, str):
            count = int(request.strip("<>").split()[0])
            options |= {"data": b"x" * count, "content_type": "application/octet-stream"}
        elif request is not None:
            options["json"] = request
        path = exchange["path"]
        return Answer(self.clients[exchange["server"]].open(path, method=exchange["method"], **options))


def _client(app: Flask) -> FlaskClient:
    return app.test_client()


class Answer:
    """An answer as the recording keeps it."""

    def __init__(self, response: Any) -> None:
        self.status: int = response.status_code
        self.content_type: str = response.headers.get("Content-Type", "")
        is_json = self.content_type.startswith("application/json")
        self.body: Any = response.get_json() if is_json else response.get_data(as_text=True)
        self.headers = response.headers


def shape(value: Any) -> Any:
    """Keys and types: what a client relies on. A list shows its items' shapes, a map of free keys its type."""
    if isinstance(value, dict):
        return {key: "map" if key == "metadata" else shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    if isinstance(value, str) and ID.fullmatch(value):
        return "id"
    return type(value).__name__


def ids_in(value: Any) -> list[str]:
    """Every id of a value, in the order of its keys."""
    if isinstance(value, dict):
        return [found for key in sorted(value) for found in ids_in(value[key])]
    if isinstance(value, list):
        return [found for item in value for found in ids_in(item)]
    return [value] if isinstance(value, str) and ID.fullmatch(value) else []


def translated(value: Any, ids: dict[str, str]) -> Any:
    """The value with the recorded ids replaced by ours."""
    return json.loads(ID.sub(lambda match: ids.get(match[0], match[0]), json.dumps(value)))
