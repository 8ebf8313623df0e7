"""One region's S3: moto's answers behind faults, a check of the access key, and the journal."""

from __future__ import annotations

import re
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from moto.moto_server import werkzeug_app

from sandbox.faults import Service
from sandbox.s3_backend import SandboxBackend
from sandbox.s3_listing import listing

CREDENTIAL = re.compile(r"Credential=([^/,&]+)|AWS ([^:]+):")
ERROR = '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>'
CODES = {"500": "InternalError", "503": "SlowDown", "429": "TooManyRequests"}


class S3:
    """WSGI application. Signatures are not checked, as in moto; the access key is."""

    def __init__(self, backend: SandboxBackend, faults: Service, access_key_id: str) -> None:
        self._moto = _moto()
        self._backend = backend
        self._faults = faults
        self._access_key_id = access_key_id

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        if status := self._faults.meet(environ):
            return _error(start, status, CODES[status[:3]], "told to fail")
        if _access_key(environ) != self._access_key_id:
            return _error(start, "403 Forbidden", "InvalidAccessKeyId", "The AWS Access Key Id is not known here.")
        listed = listing(self._backend, environ["REQUEST_METHOD"], environ["PATH_INFO"], environ["QUERY_STRING"])
        if listed is not None:
            start("200 OK", [("Content-Type", "application/xml"), ("Content-Length", str(len(listed)))])
            return [listed]
        try:
            answer = list(self._moto(environ, start))
            self._backend.publish()
            return answer
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


def _error(start: StartResponse, status: str, code: str, message: str) -> Iterable[bytes]:
    body = ERROR.format(code=code, message=message).encode()
    headers = [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))]
    start(status, headers + ([("Retry-After", "1")] if status.startswith("429") else []))
    return [body]
