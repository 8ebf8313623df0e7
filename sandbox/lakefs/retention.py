"""Rules of garbage collection. As with lakeFS they lie in the namespace, where replication takes them along, and every
repository over it has them; lakeFS writes protobuf there, this JSON. Nothing is collected.
"""

from __future__ import annotations

import json
from typing import Any

from sandbox.lakefs.errors import invalid, not_found
from sandbox.lakefs.server import Server

PLACE = "_lakefs/retention/gc/rules/config.json"


def rules(server: Server, name: str) -> Any:
    """As the API gives them. Raises a 404 for no repository, and for no rules."""
    stored = server.blobs.get(*server.repository(name).key_of(PLACE))
    if not stored:
        raise not_found()
    return json.loads(stored)


def set_rules(server: Server, name: str, default_days: int, branches: list[Any]) -> None:
    """Raises a 404, the 403 of read-only repositories, and a 400."""
    repository = server.writable(name, force=False)
    if not all(isinstance(row, dict) and {"branch_id", "retention_days"} <= row.keys() for row in branches):
        raise invalid('request body has an error: doesn\'t match schema: Error at "/branches"')
    told = {"default_retention_days": default_days, "branches": branches or None}
    server.blobs.put(*repository.key_of(PLACE), json.dumps(told).encode())


def delete_rules(server: Server, name: str) -> None:
    """An empty file is what lakeFS leaves. Raises a 404, and the 403 of read-only repositories."""
    server.blobs.put(*server.writable(name, force=False).key_of(PLACE), b"")
