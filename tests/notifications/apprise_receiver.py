"""Who gets what Apprise sends by `json://`, on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class AppriseReceiver:
    """`taken`: bodies, in order; `answers`: the statuses of the next calls, then 200."""

    def __init__(self) -> None:
        self.taken: list[dict[str, Any]] = []
        self.answers: list[int] = []
        self.apprise_url = ""


@contextmanager
def apprise_receiver() -> Iterator[AppriseReceiver]:
    made = AppriseReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status = made.answers.pop(0) if made.answers else 200
            if status == 200:
                made.taken.append(body)
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    made.apprise_url = f"json://127.0.0.1:{server.server_port}/t0ken-of-apprise"
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
