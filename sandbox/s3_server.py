"""One region's S3: moto's answers behind faults, a check of the access key, and the journal."""

from __future__ import annotations

import re
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from moto.moto_server import werkzeug_app

from sandbox.faults import Mode, Service
from sandbox.guard import do_unheard
from sandbox.s3_backend import SandboxBackend
from sandbox.s3_bucket_rules import replication
from sandbox.s3_listing import listing
from sandbox.s3_peers import Peers

CREDENTIAL = re.compile(r"Credential=([^/,&]+)|AWS ([^:]+):")
ERROR = '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>'
EMPTY = '<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>'
ANSWERS = {
    Mode.ERROR: ("500 Internal Server Error", "InternalError"),
    Mode.LATE_ERROR: ("500 Internal Server Error", "InternalError"),
    Mode.UNAVAILABLE: ("503 Service Unavailable", "SlowDown"),
    Mode.THROTTLE: ("429 Too Many Requests", "TooManyRequests"),
    Mode.REVOKED: ("403 Forbidden", "InvalidAccessKeyId"),
    Mode.DENIED: ("403 Forbidden", "AccessDenied"),
    Mode.FULL: ("507 Insufficient Storage", "InsufficientStorage"),
}


class S3:
    """WSGI application. Signatures are not checked, as in moto; the access key is."""

    def __init__(self, backend: SandboxBackend, faults: Service, access_key_id: str, peers: Peers) -> None:
        self._moto = _moto()
        self._backend = backend
        self._peers = peers
        self._faults = faults
        self._access_key_id = access_key_id

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        mode = self._faults.meet(environ)
        if mode is Mode.LATE_ERROR:
            do_unheard(self._answer, environ)
        if mode is Mode.EMPTY:
            return _send(environ, start, "200 OK", EMPTY)
        if mode is not Mode.OK:
            return _error(environ, start, *ANSWERS[mode], "told to fail")
        return self._answer(environ, start)

    def _answer(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        if _access_key(environ) != self._access_key_id:
            unknown = "The AWS Access Key Id is not known here."
            return _error(environ, start, "403 Forbidden", "InvalidAccessKeyId", unknown)
        if self._peers.would_ask(environ) and self._faults.proxies(environ):
            answer = self._peers.answer(environ, start)
            if answer is not None:
                return answer
        request = self._backend, environ["REQUEST_METHOD"], environ["PATH_INFO"], environ["QUERY_STRING"]
        told = listing(*request) or replication(*request)
        if told is not None:
            start("200 OK", [("Content-Type", "application/xml"), ("Content-Length", str(len(told)))])
            return [told]
        try:
            own = list(self._moto(environ, start))
            self._backend.publish()
            return own
        finally:
            self._backend.forget()


def _moto() -> WSGIApplication:
    setattr(werkzeug_app, "DISABLE_GLOBAL_CORS", True)  # noqa: B010  (a name that the module only imports)
    app = werkzeug_app.create_backend_app("s3")
    app.debug = False
    return app


def _access_key(environ: WSGIEnvironment) -> str:
    said = environ.get("HTTP_AUTHORIZATION") or environ["QUERY_STRING"].replace("%2F", "/")
    found = CREDENTIAL.search(said)
    return (found[1] or found[2]) if found else ""


def _error(environ: WSGIEnvironment, start: StartResponse, status: str, code: str, message: str) -> Iterable[bytes]:
    return _send(environ, start, status, ERROR.format(code=code, message=message))


def _send(environ: WSGIEnvironment, start: StartResponse, status: str, text: str) -> Iterable[bytes]:
    body = text.encode()
    headers = [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))]
    start(status, headers + ([("Retry-After", "1")] if status.startswith("429") else []))
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]
