"""The HTTP side of objects."""

from __future__ import annotations

import re
import time
from email.utils import formatdate
from urllib.parse import quote

from flask import Blueprint, Response, request

from graveler.entries import AddressType, Entry, Timestamp
from sandbox.lakefs import answers, objects
from sandbox.lakefs.errors import invalid
from sandbox.lakefs.model import Repository
from sandbox.lakefs.objects import Upload
from sandbox.lakefs.requests_in import Body, amount, flag, text
from sandbox.lakefs.server import Server

META = "x-lakefs-meta-"
RANGE = re.compile(r"bytes=(\d*)-(\d*)")
PRESIGNED_SECONDS = 900


def object_routes(server: Server, access_key_id: str) -> Blueprint:
    """Routes of /branches/{b}/objects and /refs/{r}/objects."""
    routes = Blueprint("objects", __name__, url_prefix="/api/v1/repositories/<repo>")

    @routes.post("/branches/<branch>/objects")
    def upload(repo: str, branch: str) -> Response:
        sent = _upload(text("path", required=True))
        only_new = request.headers.get("If-None-Match") == "*"
        entry = objects.object_upload(server, repo, branch, sent, force=flag("force"), only_new=only_new)
        return answers.send(answers.statistics(server.repository(repo), entry), 201)

    @routes.put("/branches/<branch>/objects")
    def stage(repo: str, branch: str) -> Response:
        entry = _staged(Body("ObjectStageCreation"), server.repository(repo), text("path", required=True))
        objects.object_stage(server, repo, branch, entry, force=flag("force"))
        return answers.send(answers.statistics(server.repository(repo), entry), 201)

    @routes.delete("/branches/<branch>/objects")
    def delete(repo: str, branch: str) -> Response:
        objects.object_delete(server, repo, branch, text("path", required=True), force=flag("force"))
        return answers.nothing()

    @routes.post("/branches/<branch>/objects/delete")
    def delete_many(repo: str, branch: str) -> Response:
        for path in Body("PathList").get("paths", list):
            objects.object_delete(server, repo, branch, str(path), force=flag("force"))
        return answers.send({"errors": []})

    @routes.get("/refs/<ref>/objects")
    def get(repo: str, ref: str) -> Response:
        repository, entry = objects.object_stat(server, repo, ref, text("path", required=True))
        return _content(entry, server.body_of(repository, entry))

    @routes.get("/refs/<ref>/objects/stat")
    def stat(repo: str, ref: str) -> Response:
        repository, entry = objects.object_stat(server, repo, ref, text("path", required=True))
        shape = answers.statistics(repository, entry)
        if flag("presign"):
            shape |= _presigned(shape["physical_address"], access_key_id)
        return answers.send(shape)

    @routes.get("/refs/<ref>/objects/ls")
    def listing(repo: str, ref: str) -> Response:
        repository, found, has_more = objects.object_list(
            server,
            repo,
            ref,
            prefix=text("prefix"),
            after=text("after"),
            delimiter=text("delimiter"),
            amount=amount(),
        )
        metadata = flag("user_metadata", default=True)
        return answers.whole_page(
            found, has_more, lambda item: answers.listed(repository, item, with_metadata=metadata), _path
        )

    return routes


def _path(item: Entry | str) -> str:
    return item if isinstance(item, str) else item.path.decode("utf-8", "replace")


def _upload(path: str) -> Upload:
    metadata = {name[len(META) :].lower(): v for name, v in request.headers if name.lower().startswith(META)}
    kind = request.mimetype
    if kind == "multipart/form-data":
        part = request.files.get("content")
        if part is None:
            raise invalid("no 'content' part in the form")
        return Upload(path, part.read(), part.mimetype or "application/octet-stream", metadata)
    return Upload(path, request.get_data(), request.content_type or "application/octet-stream", metadata)


def _staged(body: Body, repository: Repository, path: str) -> Entry:
    address: str = body.get("physical_address", str)
    own = repository.storage_namespace.rstrip("/") + "/"
    relative = address.startswith(own)
    return Entry(
        path=path.encode(),
        address=address[len(own) :] if relative else address,
        size=body.get("size_bytes", int),
        etag=body.get("checksum", str),
        last_modified=Timestamp(body.optional_int("mtime") or int(time.time())),
        metadata=body.texts("metadata"),
        content_type=body.get("content_type", str, "application/octet-stream"),
        address_type=AddressType.RELATIVE if relative else AddressType.FULL,
    )


def _content(entry: Entry, data: bytes) -> Response:
    wanted = RANGE.fullmatch(request.headers.get("Range", ""))
    headers = {
        "Etag": f'"{entry.etag}"',
        "Last-Modified": formatdate(entry.last_modified.seconds if entry.last_modified else 0, usegmt=True),
        "Content-Disposition": "attachment",
    }
    kind = entry.content_type or "application/octet-stream"
    if not wanted or wanted[0] == "bytes=-":
        return Response(data, 200, headers, content_type=kind)
    first = int(wanted[1]) if wanted[1] else max(0, len(data) - int(wanted[2]))
    last = min(int(wanted[2]), len(data) - 1) if wanted[1] and wanted[2] else len(data) - 1
    if first > last:
        raise invalid("range not satisfiable")
    headers["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
    return Response(data[first : last + 1], 206, headers, content_type=kind)


def _presigned(uri: str, access_key_id: str) -> dict[str, object]:
    """A link that the region's store accepts, which checks no signatures."""
    signature = f"X-Amz-Credential={quote(access_key_id)}&X-Amz-Expires={PRESIGNED_SECONDS}&X-Amz-Signature=any"
    url = f"{request.environ['sandbox.store']}/{quote(uri[len('s3://') :])}?{signature}"
    return {"physical_address": url, "physical_address_expiry": int(time.time()) + PRESIGNED_SECONDS}
