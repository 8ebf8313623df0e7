"""The shapes of lakeFS's answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, TypeVar

from flask import Response

from core.types import Commit
from graveler.entries import Entry
from sandbox.lakefs.model import Repository
from sandbox.lakefs.objects import location
from sandbox.lakefs.requests_in import LARGEST_PAGE

T = TypeVar("T")
Json = dict[str, Any]
VERSION = "1.84.0"
STORAGE = {
    "blockstore_description": "",
    "blockstore_id": "",
    "blockstore_namespace_ValidityRegex": "^s3://",
    "blockstore_namespace_example": "s3://example-bucket/",
    "blockstore_type": "s3",
    "default_namespace_prefix": "",
    "import_support": False,
    "import_validity_regex": "^s3://",
    "pre_sign_multipart_upload": False,
    "pre_sign_support": True,
    "pre_sign_support_ui": False,
}
LOGIN = {
    "RBAC": "none",
    "login_cookie_names": ["internal_auth_session"],
    "login_failed_message": "The credentials don't match.",
    "login_url": "",
    "login_url_method": "none",
    "logout_url": "",
}
VERSION_CONFIG = {"version": VERSION, "version_context": "lakeFS"}


def send(value: object, status: int = 200) -> Response:
    """JSON as lakeFS writes it: keys sorted, a newline at the end."""
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return Response(body + "\n", status, content_type="application/json")


def nothing() -> Response:
    """204."""
    answer = Response(status=204)
    answer.headers.pop("Content-Type", None)
    return answer


def plain(text: str, status: int) -> Response:
    """Text without quotes, as for a created branch."""
    return Response(text, status, content_type="text/plain; charset=utf-8")


def page(items: Iterable[T], amount: int, shape: Callable[[T], Json], name: Callable[[T], str]) -> Response:
    """One page of a listing; the cursor of the next page is the name of the last item."""
    found = list(islice(items, amount + 1))
    return whole_page(found[:amount], len(found) > amount, shape, name)


def whole_page(items: Sequence[T], has_more: bool, shape: Callable[[T], Json], name: Callable[[T], str]) -> Response:
    """A page that somebody cut already."""
    pagination = {
        "has_more": has_more,
        "max_per_page": LARGEST_PAGE,
        "next_offset": name(items[-1]) if has_more else "",
        "results": len(items),
    }
    return send({"pagination": pagination, "results": [shape(item) for item in items]})


def repository(found: Repository) -> Json:
    """A repository."""
    return {
        "creation_date": found.creation_date,
        "default_branch": found.default_branch,
        "id": found.id,
        "read_only": found.read_only,
        "storage_id": "",
        "storage_namespace": found.storage_namespace,
    }


def commit(found: Commit) -> Json:
    """A commit record."""
    return {
        "committer": found.committer,
        "creation_date": found.creation_date,
        "generation": found.generation,
        "id": found.id,
        "message": found.message,
        "meta_range_id": found.metarange_id,
        "metadata": dict(found.metadata),
        "parents": list(found.parents),
        "version": found.version,
    }


def ref(pair: tuple[str, str]) -> Json:
    """A branch or a tag."""
    return {"commit_id": pair[1], "id": pair[0]}


def statistics(repo: Repository, entry: Entry) -> Json:
    """An object as `stat` and an upload show it."""
    return {
        "checksum": entry.etag,
        "content_type": entry.content_type or "application/octet-stream",
        "metadata": dict(entry.metadata),
        "mtime": entry.last_modified.seconds if entry.last_modified else 0,
        "path": entry.path.decode("utf-8", "replace"),
        "path_type": "object",
        "physical_address": location(repo, entry),
        "size_bytes": entry.size,
    }


def listed(repo: Repository, item: Entry | str, *, with_metadata: bool) -> Json:
    """An object or a common prefix as `ls` shows it: without metadata where there is none."""
    if isinstance(item, str):
        return {"checksum": "", "mtime": 0, "path": item, "path_type": "common_prefix", "physical_address": ""}
    shown = statistics(repo, item)
    if not shown["metadata"] or not with_metadata:
        del shown["metadata"]
    return shown


def change(item: tuple[str, bytes, int]) -> Json:
    """One line of a diff."""
    kind, path, size = item
    return {"path": path.decode("utf-8", "replace"), "path_type": "object", "size_bytes": size, "type": kind}
