"""What stands before a region's lakeFS: the faults that it is told, whether it is the stand-in or a real one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import urllib3

from sandbox.faults import Service

# Hop by hop, or set anew.
NOT_PASSED_ON = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "expect"}


class Guarded:
    """WSGI application: `app` behind `faults`. Tells the app where the region's store is."""

    def __init__(self, app: WSGIApplication, faults: Service, store_url: str) -> None:
        self._app = app
        self._faults = faults
        self._store_url = store_url

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        if status := self._faults.meet(environ):
            body = json.dumps({"message": "the sandbox was told to fail here"}).encode()
            headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
            start(status, headers + ([("Retry-After", "1")] if status.startswith("429") else []))
            return [body]
        environ["sandbox.store"] = self._store_url
        return self._app(environ, start)


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
