"""What stands before a region's lakeFS: the faults that it is told, whether it is the stand-in or a real one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import urllib3

from sandbox.faults import Mode, Service

# Hop by hop, or set anew.
NOT_PASSED_ON = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "expect"}
NOTHING = {"pagination": {"has_more": False, "next_offset": "", "max_per_page": 1000, "results": 0}, "results": []}
TOLD = {"message": "the sandbox was told to fail here"}
ANSWERS: dict[Mode, tuple[str, dict[str, Any]]] = {
    Mode.ERROR: ("500 Internal Server Error", TOLD),
    Mode.LATE_ERROR: ("500 Internal Server Error", TOLD),
    Mode.UNAVAILABLE: ("503 Service Unavailable", TOLD),
    Mode.THROTTLE: ("429 Too Many Requests", TOLD),
    Mode.REVOKED: ("401 Unauthorized", {"message": "error authenticating request"}),
    Mode.DENIED: ("403 Forbidden", {"message": "insufficient permissions"}),
    Mode.FULL: ("507 Insufficient Storage", {"message": "no space left on device"}),
    Mode.EMPTY: ("200 OK", NOTHING),
}


class Guarded:
    """WSGI application: `app` behind `faults`. Tells the app where the region's store is."""

    def __init__(self, app: WSGIApplication, faults: Service, store_url: str) -> None:
        self._app = app
        self._faults = faults
        self._store_url = store_url

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        mode = self._faults.meet(environ)
        environ["sandbox.store"] = self._store_url
        if mode is Mode.OK:
            return self._app(environ, start)
        if mode is Mode.LATE_ERROR:
            do_unheard(self._app, environ)
        status, said = ANSWERS[mode]
        body = json.dumps(said).encode()
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
        start(status, headers + ([("Retry-After", "1")] if mode is Mode.THROTTLE else []))
        return [body]


def do_unheard(app: WSGIApplication, environ: WSGIEnvironment) -> None:
    """The work of a request whose answer nobody hears."""
    list(app(environ, lambda *_: lambda _: None))


class Proxy:
    """WSGI application: passes everything on to another server."""

    def __init__(self, url: str) -> None:
        self._pool = urllib3.connectionpool.connection_from_url(url, maxsize=32, timeout=60.0, retries=False)

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        headers = {name[5:].replace("_", "-").title(): str(v) for name, v in environ.items() if name[:5] == "HTTP_"}
        if environ.get("CONTENT_TYPE"):
            headers["Content-Type"] = environ["CONTENT_TYPE"]
        body = environ["wsgi.input"].read()
        answer = self._pool.urlopen(
            environ["REQUEST_METHOD"],
            environ["RAW_URI"],
            body=body,
            headers={name: value for name, value in headers.items() if name.lower() not in NOT_PASSED_ON},
            redirect=False,
            decode_content=False,
        )
        passed = [(name, value) for name, value in answer.headers.items() if name.lower() not in NOT_PASSED_ON]
        start(f"{answer.status} {answer.reason or '-'}", passed)
        return [answer.data]
