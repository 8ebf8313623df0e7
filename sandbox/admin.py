"""The sandbox's own side door of a region, under /_sandbox on its S3 port: journal, whole objects, faults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import Any

from flask import Flask, Response, jsonify, request

from sandbox.bundle import Stored, pack, unpack
from sandbox.faults import Fault, Mode, Service
from sandbox.journal import DELETE
from sandbox.s3_backend import SandboxBackend

PREFIX = "/_sandbox"
STORE_STOPPED = {"message": "the store is told to give no answer"}


def make_admin(backend: SandboxBackend, services: dict[str, Service]) -> Flask:
    """The WSGI application. It answers also while the services are told to fail; reading and writing objects
    fails with the store."""
    app = Flask(__name__)

    @app.get(f"{PREFIX}/journal")
    def journal() -> Response:
        start, wait = int(request.args["start"]), float(request.args.get("wait", 0))
        writes = backend.journal.read(start, wait=wait, limit=int(request.args.get("limit", 1000)))
        listed = [[w.op, w.bucket, w.key, w.version, w.size] for w in writes]
        return jsonify({"writes": listed, "length": len(backend.journal)})

    @app.post(f"{PREFIX}/read")
    def read() -> Any:
        if services["s3"].stopped:
            return STORE_STOPPED, 503
        wanted: list[list[str]] = request.get_json()
        return Response(pack(_read(backend, wanted)), content_type="application/octet-stream")

    @app.post(f"{PREFIX}/write")
    def write() -> Any:
        if services["s3"].stopped:
            return STORE_STOPPED, 503
        count = _write(backend, unpack(BytesIO(request.get_data(cache=False))), journal=request.args["journal"] == "1")
        return {"written": count}

    @app.post(f"{PREFIX}/faults")
    def tell() -> Any:
        told = dict(request.get_json())
        names = [name] if (name := told.pop("service", "")) else list(services)
        for name in names:
            services[name].tell(Fault(**told | {"mode": Mode(told["mode"])}))
        return _faults(services)

    @app.post(f"{PREFIX}/policy")
    def policy() -> Any:
        told = request.get_json()
        bucket = told["place"].partition("/")[0]
        if bucket not in backend.buckets:
            return {"found": False}
        if told["action"]:
            backend.deny(told["place"], told["action"])
        else:
            backend.delete_bucket_policy(bucket)
        return {"found": True}

    @app.get(f"{PREFIX}/faults")
    def faults() -> Any:
        return _faults(services)

    return app


def _faults(services: dict[str, Service]) -> dict[str, object]:
    return {name: service.describe() for name, service in services.items()}


def _read(backend: SandboxBackend, wanted: Iterable[list[str]]) -> Iterator[Stored]:
    """The newest versions of objects; one that is not there (any more) is answered with the operation `delete`."""
    for bucket, key in wanted:
        found = backend.newest(bucket, key)
        if found is None:
            yield Stored(bucket, key, op=DELETE)
        else:
            yield Stored(
                bucket,
                key,
                found.value,
                etag=found.etag.strip('"'),
                metadata={name: str(value) for name, value in found.metadata.items()},
                storage_class=found.storage_class or "STANDARD",
            )


def _write(backend: SandboxBackend, objects: Iterable[Stored], *, journal: bool) -> int:
    """Writes objects. Unless they go into the journal, they are replicas: nobody replicates them again."""
    count = 0
    for item in objects:
        if item.op == DELETE:
            backend.delete_object(item.bucket, item.key)
        else:
            written = backend.store(item.bucket, item.key, item.body, etag=item.etag, metadata=item.metadata)
            written.set_storage_class(item.storage_class)
        count += 1
    if journal:
        backend.publish()
    backend.forget()
    return count
