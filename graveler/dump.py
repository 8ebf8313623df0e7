"""Entries, ranges and changes as JSON lines."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graveler.diff import Change, diff, diff_entries
from graveler.entries import Entry, Timestamp
from graveler.errors import FormatError
from graveler.files import entries_in, kind_of, range_beside, ranges_in
from graveler.metarange import METARANGES, RangeRef


def dump_lines(path: Path) -> Iterator[str]:
    """A range's entries or a metarange's ranges, one a line. Raises FormatError before the first line."""
    if kind_of(path) == METARANGES:
        return (_line(range_fields(ref)) for ref in ranges_in(path))
    return (_line(entry_fields(entry)) for entry in entries_in(path))


def diff_lines(a: Path, b: Path) -> Iterator[str]:
    """The changes from one range, or metarange with its ranges beside it, to another. Raises FormatError."""
    kind = kind_of(a)
    if kind != kind_of(b):
        raise FormatError(str(b), 0, f"a file of type {kind} like {a}")
    return (_line(change_fields(change)) for change in _changes(kind, a, b))


def _changes(kind: str, a: Path, b: Path) -> Iterator[Change]:
    if kind != METARANGES:
        return diff_entries(entries_in(a), entries_in(b))
    return diff(ranges_in(a), ranges_in(b), lambda ref: range_beside(a, ref), lambda ref: range_beside(b, ref))


def entry_fields(entry: Entry) -> dict[str, Any]:
    """path, address, address_type, size, etag, last_modified (RFC 3339, UTC, null if absent)."""
    return {
        **key_field("path", entry.path),
        "address": entry.address,
        "address_type": entry.address_type.name.lower(),
        "size": entry.size,
        "etag": entry.etag,
        "last_modified": entry.last_modified and spelled(entry.last_modified),
    }


def range_fields(ref: RangeRef) -> dict[str, Any]:
    """id, min_key, max_key, count."""
    keys = key_field("min_key", ref.min_key) | key_field("max_key", ref.max_key)
    return {"id": ref.id, **keys, "count": ref.count}


def change_fields(change: Change) -> dict[str, Any]:
    """change (added, changed, removed), path, and the other fields `before` and `after`, as far as there are."""
    sides = {"before": change.before, "after": change.after}
    fields_of = {name: _without_path(entry) for name, entry in sides.items() if entry is not None}
    return {"change": change.kind.value, **key_field("path", change.path), **fields_of}


def key_field(name: str, key: bytes) -> dict[str, str]:
    """The key as text, or in base64 under a name that says so."""
    try:
        return {name: key.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(key).decode()}


def spelled(when: Timestamp) -> str:
    """RFC 3339 in UTC, with as many digits of the second as there are."""
    text = when.to_datetime().replace(microsecond=0, tzinfo=None).isoformat()
    fraction = f".{when.nanos:09}".rstrip("0") if when.nanos else ""
    return f"{text}{fraction}Z"


def _without_path(entry: Entry) -> dict[str, Any]:
    return {name: value for name, value in entry_fields(entry).items() if not name.startswith("path")}


def _line(fields: dict[str, Any]) -> str:
    return json.dumps(fields, ensure_ascii=False)
