"""Replication faults: which objects are held back, lost or corrupted on the way."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, replace
from enum import StrEnum

from graveler.errors import FormatError
from graveler.sstable.reader import open_table
from sandbox.bundle import Stored

KINDS = {b"ranges": "range", b"metaranges": "metarange"}


class Action(StrEnum):
    """What happens to an object."""

    HOLD = "hold"
    LOSE = "lose"
    CORRUPT = "corrupt"


@dataclass(slots=True)
class Rule:
    """Meets objects whose key matches the glob `pattern` and whose kind is `kind` ("" any): data, range, metarange,
    dump or other. `left` of them (-1: all). A `silent` corruption keeps the ETag, as bit rot does."""

    action: Action
    pattern: str = "*"
    kind: str = ""
    left: int = -1
    silent: bool = False
    destination: str = ""

    def meets(self, key: str, kind: str, destination: str) -> bool:
        """Is this object met?"""
        return (
            self.left != 0
            and self.kind in ("", kind)
            and self.destination in ("", destination)
            and fnmatch.fnmatchcase(key, self.pattern)
        )


def kind_of(item: Stored) -> str:
    """What an object is: told by the prefix `_lakefs/` and, there, by the file's own `type`."""
    folders = item.key.split("/")[:-1]
    if folders[-1:] != ["_lakefs"]:
        return "data" if "data" in folders and "_lakefs" not in folders else "other"
    try:
        properties = open_table(item.body, item.key).user_properties()
    except FormatError:
        return "other"
    if "entity" in properties:
        return "dump"
    return KINDS.get(properties.get("type", b""), "other")


def corrupted(item: Stored, *, silent: bool) -> Stored:
    """The object with one byte changed; an empty one gets a byte. The ETag is of what arrives, unless silent."""
    middle = len(item.body) // 2
    body = item.body[:middle] + bytes([(item.body[middle] if item.body else 0) ^ 0x01]) + item.body[middle + 1 :]
    return replace(item, body=body, etag=item.etag if silent else "")
