"""What people did, and what of it the stores have acknowledged."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path

from tests.rule_fleet.layout import Group, Place


class Kind(StrEnum):
    PUT = "put"
    DELETE = "delete"


@dataclass(eq=False)
class Deed:
    """A write or a deletion. `ended`: 0 while it goes on; `sure`: the store said that it is done, else it may be done
    or not. `version`: the id that the store gave. `hit`: of a deletion, the number of the write that lay there right
    before, and `looked` when that was asked."""

    number: int
    kind: Kind
    group: str
    place: Place
    key: str
    began: float
    ended: float = 0.0
    sure: bool = False
    version: str = ""
    etag: str = ""
    hit: int = 0
    looked: float = 0.0

    def __str__(self) -> str:
        done = "" if self.sure else ", unanswered"
        at = time.strftime("%H:%M:%S", time.gmtime(self.began)) + f"{self.began % 1:.3f}"[1:]
        return f"{self.kind} {self.number} of {self.key} at {self.place.bucket} {at}{done}"


@dataclass
class Journal:
    """All deeds. Safe to use from several threads."""

    deeds: dict[int, Deed] = field(default_factory=dict)
    rejected: dict[tuple[str, str], float] = field(default_factory=dict)
    """(rule's group, key) of a deletion that somebody rejected, to when that was last."""
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, kind: Kind, group: Group, place: Place, key: str) -> Deed:
        """Somebody is about to do something: whatever becomes of it, it is known."""
        deed = Deed(next(self._numbers), kind, group.name, place, key, time.time())
        with self._lock:
            self.deeds[deed.number] = deed
        return deed

    def drop(self, deed: Deed) -> None:
        """It did not take place."""
        with self._lock:
            del self.deeds[deed.number]

    def reject(self, group: str, keys: list[str]) -> None:
        """Somebody rejects deletions of these now."""
        with self._lock:
            self.rejected |= {(group, key): time.time() for key in keys}

    def save(self, file: Path) -> None:
        """A line of JSON for each deed, to look into afterwards."""
        with self._lock, file.open("w") as lines:
            for deed in self.deeds.values():
                lines.write(json.dumps(asdict(deed)) + "\n")
            for (group, key), at in self.rejected.items():
                lines.write(json.dumps({"rejected": key, "group": group, "at": at}) + "\n")

    def of(self, group: str) -> dict[str, list[Deed]]:
        """The deeds of a group by key, in the order in which they began."""
        with self._lock:
            deeds = [one for one in self.deeds.values() if one.group == group]
        found: dict[str, list[Deed]] = defaultdict(list)
        for deed in sorted(deeds, key=lambda one: one.began):
            found[deed.key].append(deed)
        return found
