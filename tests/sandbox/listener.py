"""Who is called by webhooks, for tests."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Listener:
    """Keeps the webhooks that arrive: (Authorization, body)."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, dict[str, Any]]] = []
        heard = self.heard

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                heard.append((self.headers["Authorization"], body))
                self.send_response(202)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/hooks/lakefs/us-east-1"

    def first(self, kind: str, branch: str, repository: str = "") -> dict[str, Any]:
        """The first event of a kind on a branch, of this repository or any; waits for it."""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            for _, body in self.heard:
                is_of_it = repository in ("", body["repository_id"])
                if is_of_it and (body["event_type"], body.get("branch_id")) == (kind, branch):
                    return body
            time.sleep(0.02)
        raise AssertionError(f"no {kind} on {branch} among {[b['event_type'] for _, b in self.heard]}")


@contextmanager
def listening() -> Iterator[Listener]:
    """A listener that is there for a while."""
    made = Listener()
    try:
        yield made
    finally:
        made.server.shutdown()
        made.server.server_close()
