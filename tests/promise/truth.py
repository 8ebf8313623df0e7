"""What is so, whoever knows it: what commits name, what of it is at the destination, and what was shown to be there.

A part is a metarange, a range or an object, by its key below the namespace. How right it is, is a level: 0 not there,
1 there, 2 of the right size, 3 with the right bytes by its ETag, 4 read.
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.fakes import Lake
from tests.mirrors.harness import NAMESPACE
from tests.promise.stores import WatchedStore

LEVELS = {"presence": 1, "size": 2, "etag": 3, "content": 4}
METADATA = "_lakefs/"


class Truth:
    """`shown` is what the engine has seen at the destination with its own eyes, since it began there or anew.

    `found` is what it was told to be missing or wrong, and still is; it forgets what has become right. `read_wrong`: of
    that, what only a look deeper than the mirror's own has told, and no other may let pass.
    """

    def __init__(self, lake: Lake, source: WatchedStore, here: WatchedStore) -> None:
        self.lake, self.source, self.here = lake, source, here
        self.records = lake.repository.commits
        self.originals: dict[str, bytes] = {}
        self.shown: dict[str, int] = {}
        self.found: set[str] = set()
        self.read_wrong: set[str] = set()
        self._parts: dict[str, frozenset[str]] = {}
        self._ancestry: dict[str, frozenset[str]] = {}

    # What commits name

    def parts(self, sha: str) -> frozenset[str]:
        """The keys of a commit's metarange, ranges and objects; none for a commit that the source never had."""
        if sha not in self._parts:
            named = [entry.address for entry in self.lake.trees[sha].values()] if sha in self.records else []
            if sha in self.records and self.records[sha].metarange_id:
                named += [METADATA + one for one in self.lake.files_of(sha)]
            self._parts[sha] = frozenset(named)
        return self._parts[sha]

    def ancestry(self, sha: str) -> frozenset[str]:
        """A commit and all that it descends from."""
        if sha not in self._ancestry:
            ahead, seen = [sha], set[str]()
            while ahead:
                one = ahead.pop()
                if one not in seen:
                    seen.add(one)
                    ahead.extend(self.records[one].parents if one in self.records else ())
            self._ancestry[sha] = frozenset(seen)
        return self._ancestry[sha]

    # What is where

    def note_originals(self) -> None:
        """The source wrote something: that is what has to arrive."""
        skip = len("s3://src/lake/")
        for uri, data in self.source.objects.items():
            self.originals.setdefault(uri[skip:], data)

    def level(self, key: str, *, read: bool = True) -> int:
        """How right a part is at the destination now, as far as a HEAD shows it or, with `read`, a GET."""
        uri = f"{NAMESPACE}/{key}"
        data = self.here.objects.get(uri)
        if data is None or uri in self.here.archived | self.here.forbidden | self.here.failing:
            return 0
        if read and uri in self.here.sealed:
            return 0
        whole = self.originals[key]
        if data == whole:
            return 4 if read else 3
        if uri in self.here.rotten and not read:
            return 3
        return 0 if key.startswith(METADATA) else 2 if len(data) == len(whole) else 1

    def is_right(self, key: str, depth: str) -> bool:
        """Whether a check of that depth lets it pass now."""
        return self.level(key, read=depth == "content" or key.startswith(METADATA)) >= LEVELS[depth]

    def is_gone(self, key: str) -> bool:
        """Whether neither side has it."""
        return f"s3://src/lake/{key}" not in self.source.objects and f"{NAMESPACE}/{key}" not in self.here.objects

    def wrong(self, sha: str, depth: str) -> list[str]:
        """What a commit itself lacks."""
        return sorted(key for key in self.parts(sha) if not self.is_right(key, depth))

    # What the engine has seen

    def note_look(self, uri: str, read: bool) -> None:
        """The engine looked at something of the destination."""
        key = uri.removeprefix(f"{NAMESPACE}/")
        if key in self.originals:
            level = self.level(key, read=read)
            if key.startswith(METADATA) and level >= 3:
                level = 4
            self.shown[key] = max(level, self.shown.get(key, 0))

    def note_found(self, keys: Iterable[str]) -> None:
        """The books name these as missing or wrong; those that are count as found until they are right again."""
        self.found.update(key for key in keys if key in self.originals and self.level(key) < 3)

    def note_read_wrong(self, keys: Iterable[str]) -> None:
        """The books say of these that a look deeper than the mirror's own has read other bytes."""
        self.read_wrong.update(key for key in keys if key in self.originals and self.is_rotten(key))

    def is_rotten(self, key: str) -> bool:
        """Whether reading alone tells that it is wrong."""
        return self.level(key) < 3 <= self.level(key, read=False)

    def note_change(self) -> None:
        """Something changed at the destination: what is right again may be lost again unseen."""
        self.found = {key for key in self.found if self.level(key) < 3}
        self.read_wrong = {key for key in self.read_wrong if self.is_rotten(key)}

    def forget(self) -> None:
        """The engine knows nothing any more, or what it knew is of another place."""
        self.shown.clear()
        self.found.clear()
        self.read_wrong.clear()
