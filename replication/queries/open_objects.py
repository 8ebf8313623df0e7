"""Open objects of links, as lists ask for them."""

from __future__ import annotations

from typing import Any

from replication.models import Link, OpenObject

LONGEST_PREFIX = 1024


def open_objects(links: Any, *, status: str = "", code: str = "", prefix: str = "") -> Any:
    """Those of a link, or of several, with a status, a code, a key that begins with a prefix; "" is any."""
    rows = OpenObject.objects.filter(link__in=[links] if isinstance(links, Link) else links)
    rows = rows.filter(status=status) if status else rows
    rows = rows.filter(code=code) if code else rows
    return _below(rows, prefix.encode()[:LONGEST_PREFIX]) if prefix else rows


def _below(rows: Any, prefix: bytes) -> Any:
    """Keys that begin with bytes: from these on, up to the first that does not."""
    rows = rows.filter(key__gte=prefix)
    stem = prefix.rstrip(b"\xff")
    return rows.filter(key__lt=stem[:-1] + bytes([stem[-1] + 1])) if stem else rows
