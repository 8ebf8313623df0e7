"""The ETag of a mirror: it names its settings, not its state. What it is for: web/etags.py."""

from __future__ import annotations

import hashlib
import json

from mirrors.models import Mirror

COLUMNS = {
    "paused": "paused",
    "validation_depth": "depth",
    "content_sample": "content_sample",
    "imported": "imported",
    "first_sync": "first_sync",
    "repair_tampering": "repair_tampering",
    "branches": "selected",
    "tags": "tags",
    "rpo_seconds": "rpo_seconds",
    "object_replication": "object_replication",
    "copying_paused": "copying_paused",
    "hold": "hold",
    "workers": "copy_workers",
    "bytes_per_second": "copy_bytes_per_second",
    "objects_per_second": "copy_objects_per_second",
    "branch_priority": "branch_priority",
    "follow_gc": "follow_gc",
    "delete_percent": "delete_percent",
    "delete_most": "delete_most",
    "labels": "labels",
}
"""The settings by their names in the API, with their columns: those of `MirrorSettings` there."""


def etag_of(mirror: Mirror) -> str:
    """The tag of a mirror's settings. One that is made anew under an old name has another one."""
    settings = {name: getattr(mirror, column) for name, column in COLUMNS.items()}
    text = json.dumps([mirror.pk, settings], sort_keys=True)
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'
