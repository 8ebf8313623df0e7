"""What MinIO does where rules lead both ways: a store answers for what it lacks with what another site has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

import urllib3

from sandbox.guard import Proxy
from sandbox.layout import Region
from sandbox.s3_backend import SandboxBackend

OWN_ONLY = "HTTP_X_MINIO_SOURCE_PROXY_REQUEST"
"""Whatever its value: answer for yourself."""


class Peers:
    """The stores of the other regions, asked in their order for the objects that a region's bucket lacks."""

    def __init__(self, backend: SandboxBackend, bucket: str, peers: Sequence[Region]) -> None:
        self._backend = backend
        self._bucket = bucket
        self._stores = [(peer.bucket, Proxy(peer.s3_url)) for peer in peers]

    def would_ask(self, environ: WSGIEnvironment) -> bool:
        """Is it a question for an object that isn't here, from somebody who doesn't forbid to ask elsewhere?"""
        bucket, _, key = environ["PATH_INFO"].encode("latin-1").decode(errors="replace").lstrip("/").partition("/")
        reading = environ["REQUEST_METHOD"] in ("GET", "HEAD") and bucket == self._bucket and key != ""
        return reading and OWN_ONLY not in environ and self._backend.newest(bucket, key) is None

    def answer(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes] | None:
        """What the first one says that has it; None: nobody has it, or nobody answers."""
        for bucket, store in self._stores:
            told: list[Any] = []
            there = {"RAW_URI": environ["RAW_URI"].replace(self._bucket, bucket, 1), OWN_ONLY: "true"}
            try:
                body = store({**environ, **there}, lambda *said, told=told: told.extend(said))
            except urllib3.exceptions.HTTPError:
                continue
            if told[0].startswith("2"):
                start(*told)
                return body
        return None
