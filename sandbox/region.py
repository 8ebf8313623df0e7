"""One region's process: its S3 and its lakeFS (or the way to a real one)."""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from sandbox.admin import PREFIX, make_admin
from sandbox.faults import Service
from sandbox.guard import Guarded, Proxy
from sandbox.httpd import serve
from sandbox.lakefs.actions import Actions
from sandbox.lakefs.api import make_app
from sandbox.lakefs.blobs import RegionBlobs
from sandbox.lakefs.server import Server
from sandbox.layout import ACCESS_KEY_ID, SECRET_ACCESS_KEY, Region
from sandbox.s3_backend import SandboxBackend, install
from sandbox.s3_bucket_rules import declare_rules
from sandbox.s3_peers import Peers
from sandbox.s3_server import S3


@dataclass(frozen=True, slots=True)
class Serving:
    """What a region's process is given: bound sockets, the address of a real lakeFS or "", and the regions that its
    objects are replicated to."""

    region: Region
    lakefs: socket.socket
    s3: socket.socket
    real_lakefs_url: str = ""
    extra_buckets: tuple[str, ...] = ()
    name_lag: float = 0.0
    peers: tuple[Region, ...] = ()
    denied: tuple[str, ...] = ()


def run_region(serving: Serving, ready: int) -> None:
    """Serves until SIGTERM; writes a byte into the pipe `ready` once it does."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # before there are threads, which inherit it
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    start_region(serving)
    os.write(ready, b".")
    os.close(ready)
    signal.sigwait({signal.SIGTERM})


def start_region(serving: Serving) -> None:
    """Serves from daemon threads of this process."""
    region = serving.region
    services = {"s3": Service(), "lakefs": Service()}
    backend = install(region.name, [region.bucket, *serving.extra_buckets])
    declare_rules(backend, region.bucket, [peer.bucket for peer in serving.peers])
    for place in serving.denied:
        backend.deny(place, "s3:PutObject")
    s3 = S3(backend, services["s3"], ACCESS_KEY_ID, Peers(backend, region.bucket, serving.peers))
    serve(serving.s3, SideDoor(s3, make_admin(backend, services)))
    lakefs = _lakefs(serving, backend, services["s3"])
    serve(serving.lakefs, Guarded(lakefs, services["lakefs"], region.s3_url))


def _lakefs(serving: Serving, backend: SandboxBackend, store_faults: Service) -> WSGIApplication:
    if serving.real_lakefs_url:
        return Proxy(serving.real_lakefs_url)
    server = Server(RegionBlobs(backend, store_faults), name_lag=serving.name_lag)
    Actions(server)
    return make_app(server, access_key_id=ACCESS_KEY_ID, secret_access_key=SECRET_ACCESS_KEY)


class SideDoor:
    """WSGI application: S3, and the sandbox's own paths, which no bucket can have."""

    def __init__(self, s3: WSGIApplication, admin: WSGIApplication) -> None:
        self._s3 = s3
        self._admin = admin

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        mine = environ["PATH_INFO"].startswith(f"{PREFIX}/")
        return (self._admin if mine else self._s3)(environ, start)
