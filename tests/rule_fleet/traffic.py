"""What LakeMirror has asked of the stores, as the gates have noted it."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

WRITING = ("PUT", "POST", "DELETE")
OWN = "_lakemirror/"
Key = tuple[str, str]
"""Bucket and key."""


class Asked(NamedTuple):
    """A request that wrote or deleted an object: when it came and was answered; `number`: of the write whose content it
    brought (0: it does not say); `status`: 0 if nobody knows what became of it; `heard`: LakeMirror knows it."""

    began: float
    ended: float
    number: int
    status: int
    heard: bool = True

    @property
    def done(self) -> bool:
        return 200 <= self.status < 300

    @property
    def may_be_done(self) -> bool:
        return self.done or not self.status or self.status >= 500


@dataclass
class Traffic:
    """By bucket and key."""

    heads: dict[Key, list[float]] = field(default_factory=lambda: defaultdict(list))
    writes: dict[Key, list[Asked]] = field(default_factory=lambda: defaultdict(list))
    deletes: dict[Key, list[Asked]] = field(default_factory=lambda: defaultdict(list))
    uploads: dict[Key, list[Asked]] = field(default_factory=lambda: defaultdict(list))
    """Those in parts that it began."""
    requests: int = 0

    def of(self, buckets: Iterable[str]) -> Traffic:
        """That of some buckets alone."""
        chosen = set(buckets)
        parts = (self.heads, self.writes, self.deletes, self.uploads)
        return Traffic(*({at: some for at, some in part.items() if at[0] in chosen} for part in parts))

    def looked_before(self, at: Key, when: float) -> float:
        """When an object was last asked about before a time; 0.0: never."""
        heads = self.heads.get(at, [])
        found = bisect_right(heads, when)
        return heads[found - 1] if found else 0.0

    def written_between(self, at: Key, low: float, high: float) -> list[Asked]:
        """What may have been written there in a time."""
        return [one for one in self.writes.get(at, ()) if one.may_be_done and one.began <= high and one.ended >= low]


def lines_of(logs: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """All requests of some gates, in the order in which they were answered at each."""
    for log in logs:
        if log.exists():
            with log.open() as lines:
                yield from map(json.loads, lines)


def key_of(line: dict[str, Any]) -> Key:
    bucket, _, key = line["path"].lstrip("/").partition("/")
    return bucket, key


def writes_after(logs: Iterable[Path], when: float) -> list[str]:
    """What LakeMirror wrote or deleted from then on, or tried to, its own files included."""
    return [
        f"{line['method']} {line['path']}?{line['query']} {line['status']}"
        for line in lines_of(logs)
        if line["t0"] >= when and line["method"] in WRITING
    ]


def read_traffic(logs: Iterable[Path]) -> Traffic:
    """Of what gates have noted."""
    found = Traffic()
    begun: dict[Key, int] = {}
    for line in sorted(lines_of(logs), key=lambda one: one["t0"]):
        found.requests += 1
        at = key_of(line)
        if not at[1] or at[1].startswith(OWN):
            continue
        method, query, number = line["method"], line["query"], int(line["id"] or 0)
        if method == "HEAD":
            found.heads[at].append(line["t0"])
        elif method == "DELETE" and not query:
            found.deletes[at].append(_asked(line, 0))
        elif method == "POST" and query.startswith("uploads"):
            begun[at] = number
            found.uploads[at].append(_asked(line, number))
        elif method == "POST" and query.startswith("uploadId"):
            found.writes[at].append(_asked(line, begun.get(at, 0)))
        elif method == "PUT" and not {"uploadId", "partNumber", "tagging", "retention", "legal-hold"} & _names(query):
            found.writes[at].append(_asked(line, number))
    return found


def _asked(line: dict[str, Any], number: int) -> Asked:
    return Asked(line["t0"], line["t1"], number, line["status"], line["heard"])


def _names(query: str) -> set[str]:
    return {part.partition("=")[0] for part in query.split("&")}
