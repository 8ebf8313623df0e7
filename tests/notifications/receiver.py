"""A real receiver of messages on loopback: checks signatures by docs/notifications.md, and answers as it is told."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "a-secret-of-sixteen-letters"


class Receiver:
    """`taken`: bodies with a right signature, in order; `answers`: the statuses of the next calls, then 204."""

    def __init__(self) -> None:
        self.taken: list[dict[str, Any]] = []
        self.ids: list[str] = []
        self.wrong: list[str] = []
        self.asked: list[str] = []
        self.answers: list[int] = []
        self.headers: dict[str, str] = {}
        told = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                told.hear(dict(self.headers), body)
                status = told.answers.pop(0) if told.answers else 204
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", f"{told.url}/elsewhere")
                text = f"said to {self.path}".encode() if status >= 400 else b""
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def do_GET(self) -> None:
                told.asked.append(self.path)
                self.send_response(told.answers.pop(0) if told.answers else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def hear(self, headers: dict[str, str], body: bytes) -> None:
        fields = dict(part.split("=", 1) for part in headers["LakeMirror-Signature"].split(","))
        right = hmac.new(SECRET.encode(), fields["t"].encode() + b"." + body, hashlib.sha256).hexdigest()
        self.headers = headers
        self.ids.append(headers["LakeMirror-Delivery"])
        if hmac.compare_digest(right, fields["v1"]):
            self.taken.append(json.loads(body))
        else:
            self.wrong.append(body.decode())

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@contextmanager
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    try:
        yield made
    finally:
        made.close()
