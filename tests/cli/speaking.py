"""The command as a person at a terminal uses it, and servers for it to talk to."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests
from click.testing import CliRunner, Result
from django.test import Client
from requests.adapters import BaseAdapter

from lakemirror.app import lakemirror

API = "/service/replication/v1"
_OF_THE_WIRE = ("Content-Length", "Accept-Encoding")
KEY = {"LAKEMIRROR_ACCESS_KEY_ID": "AKIATEST", "LAKEMIRROR_SECRET_ACCESS_KEY": "very-secret"}


@dataclass
class Terminal:
    """Runs commands with an environment of their own."""

    env: dict[str, str | None]

    def __call__(self, *arguments: str, typed: str = "") -> Result:
        return CliRunner().invoke(lakemirror, arguments, env=self.env, input=typed)

    def json(self, *arguments: str) -> Any:
        """What a program reads."""
        done = self(*arguments, "--json")
        assert done.exit_code == 0, done.stderr
        return json.loads(done.stdout)


@dataclass(frozen=True)
class Asked:
    """A request that came in."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class StandIn:
    """Answers with what it was told, each answer once and the last one again and again."""

    url: str = ""
    answers: dict[tuple[str, str], list[tuple[int, Any]]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    tag: str = ""
    drops: int = 0
    """So many requests get no answer."""

    def says(self, method: str, path: str, *answers: Any, status: int = 200) -> None:
        self.answers[method, f"{API}{path}"] = [(status, answer) for answer in answers]

    def answer_to(self, method: str, path: str) -> tuple[int, Any]:
        left = self.answers.get((method, path))
        if left is None:
            return 404, {"message": "there is nothing at this address"}
        return left.pop(0) if len(left) > 1 else left[0]


@contextmanager
def stand_in() -> Iterator[StandIn]:
    """A server on a port of its own."""
    told = StandIn()

    class Handler(BaseHTTPRequestHandler):
        def _any(self) -> None:
            parts = urlsplit(self.path)
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            body = json.loads(data) if data else None
            told.asked.append(Asked(self.command, parts.path, query, dict(self.headers), body))
            if told.drops:
                told.drops -= 1
                self.close_connection = True
                return
            self._send(*told.answer_to(self.command, parts.path))

        do_GET = do_POST = do_DELETE = _any

        def _send(self, status: int, answer: Any) -> None:
            data = answer if isinstance(answer, bytes) else b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", "https://elsewhere.example.com/")
            if told.tag:
                self.send_header("ETag", told.tag)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    told.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class InProcess(BaseAdapter):
    """Takes what requests would send to the application in this process, in the test's own transaction."""

    def __init__(self, **_: Any) -> None:
        super().__init__()
        self.client = Client()

    def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
        assert request.method and request.url
        address = urlsplit(request.url)
        answered = self.client.generic(
            request.method,
            f"{address.path}?{address.query}",
            request.body or b"",
            content_type="application/json",
            headers={name: value for name, value in request.headers.items() if name not in _OF_THE_WIRE},
        )
        response = requests.Response()
        response.status_code, response.reason, response.url = answered.status_code, answered.reason_phrase, request.url
        response.headers.update(dict(answered.items()))
        response._content, response._content_consumed = answered.getvalue(), True
        return response

    def close(self) -> None:
        """Nothing is open."""
