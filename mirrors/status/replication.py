"""Why what a mirror waits for has not arrived by the stores' replication, as pages and API tell it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from core.bringing import ObjectReplication
from mirrors.models import Mirror
from web.serializers import rfc3339


@dataclass(frozen=True, slots=True)
class CauseCount:
    """A cause (core/replication/causes.py): of how many files, in a sentence, and what to do ("" for nothing)."""

    cause: str
    number: int
    message: str
    fix: str


@dataclass(frozen=True, slots=True)
class Replicating:
    """What the source's store (aws, minio or other) told at `as_of`; the most frequent cause first."""

    as_of: datetime
    store: str
    causes: list[CauseCount]


def replicating(mirror: Mirror) -> Replicating | None:
    """None where nothing is awaited, nobody has asked yet, or LakeMirror copies the objects."""
    kept = mirror.replication
    if kept is None or mirror.object_replication != ObjectReplication.NATIVE:
        return None
    causes = [CauseCount(**cause) for cause in kept["causes"]]
    return Replicating(datetime.fromisoformat(kept["as_of"]), kept["store"], causes)


def replication_json(mirror: Mirror) -> dict[str, Any] | None:
    """The same as JSON."""
    told = replicating(mirror)
    if told is None:
        return None
    causes = [
        {"cause": one.cause, "number": one.number, "message": one.message, "fix": one.fix or None}
        for one in told.causes
    ]
    return {"as_of": rfc3339(told.as_of), "store": told.store, "causes": causes}
