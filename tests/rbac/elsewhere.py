"""Servers elsewhere that know keys, a process that is told which, and programs that call with a key."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.test import Client

from deployment import config
from deployment.wiring import clients
from rbac.keys import authenticators, identify, rate_limit
from tests.deployment.test_config import changed

SECRET = "a secret of sixteen letters"


class Elsewhere:
    """A small server: answers by path, each a status and JSON; what it was asked is written down."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, Any]] = {}
        self.asked: list[tuple[str, str]] = []
        told = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                told.asked.append((self.path, self.headers.get("Authorization", "")))
                found = told.answers.get(self.path.partition("?")[0], (404, {"message": "nothing"}))
                status, body = found(self) if callable(found) else found
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode() if body is not None else b"<html>")

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def there() -> Iterator[Elsewhere]:
    made = Elsewhere()
    yield made
    made.close()


Tell = Callable[..., None]


@pytest.fixture
def tell() -> Iterator[Tell]:
    """Make this process one with these fields."""
    caches = (authenticators.configured, clients.authorization, rate_limit.shared)

    def forget() -> None:
        for cache in caches:
            cache.cache_clear()
        identify._right_lately._entries.clear()

    with pytest.MonkeyPatch.context() as patch:

        def told(**fields: Any) -> None:
            data = changed("auth", {"encrypt": {"secret_key": "k"}, **fields})
            data["regional_endpoint"] = fields.pop("lakefs_url", data["regional_endpoint"])
            data["auth"].pop("lakefs_url", None)
            patch.setattr(config, "current", lambda: config.parse(data))
            forget()

        forget()
        yield told
    forget()


def ask(key_id: str, secret: str = SECRET, path: str = "/service/replication/v1/mirrors", **more: Any) -> Any:
    basic = base64.b64encode(f"{key_id}:{secret}".encode()).decode()
    return Client().get(path, headers={"authorization": f"Basic {basic}"}, **more)
