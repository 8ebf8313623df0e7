"""Somebody who lists a mirror's namespace all the time: nothing may lie there that names what is not there yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from core.errors import NotFound
from core.ports import ObjectStore
from core.types import ObjectInfo
from graveler.entries import Entry
from graveler.metarange import METARANGES, RangeRef, read_metarange
from graveler.ranges import read_range
from graveler.sstable.reader import open_table

_METADATA = "_lakefs/"
_ID_LENGTH = 64


@dataclass
class DestinationWatch:
    """Looks at the mirror's namespace in `store`. `shown` gives the metaranges of the commits that a reader may see.

    Whatever names comes before what is named, in each look: what a file that was listed names has to be there when it
    is looked for. Nothing is deleted at this destination, so a file whose names were all there is not looked at again.
    """

    store: ObjectStore
    namespace: str
    shown: Callable[[], Iterable[str]]
    looks: int = 0
    problems: list[str] = field(default_factory=list)
    _named: dict[str, list[Entry] | list[RangeRef]] = field(default_factory=dict)
    _whole: set[str] = field(default_factory=set)

    def look(self) -> None:
        """One look at everything. Raises LakeMirrorError when the store does not answer; then nothing is concluded."""
        shown = set(self.shown())
        files = self._listed(_METADATA)
        for name in sorted(key.removeprefix(_METADATA) for key in files):
            if len(name) == _ID_LENGTH and name not in self._named:
                self._named[name] = self._read(name)
        objects = self._listed("data/")
        for name in self._named.keys() - self._whole:
            self._judge(name, files | objects)
        for metarange in shown:
            self._judge_shown(metarange)
        self.looks += 1

    @property
    def whole(self) -> int:
        """How many metaranges and ranges were found whole."""
        return len(self._whole)

    def _listed(self, folder: str) -> dict[str, ObjectInfo]:
        base = f"{self.namespace}/"
        found = self.store.list(base + folder)
        start = len(base.removeprefix("s3://").partition("/")[2])
        return {info.key[start:]: info for info in found}

    def _read(self, name: str) -> list[Entry] | list[RangeRef]:
        data = self.store.get(f"{self.namespace}/{_METADATA}{name}")
        if open_table(data, name).identifying_properties() == {"type": METARANGES}:
            return read_metarange(data, expected_id=name)
        return list(read_range(data, expected_id=name))

    def _judge(self, name: str, there: dict[str, ObjectInfo]) -> None:
        wrong = [problem for one in self._named[name] if (problem := self._wrong(one, there))]
        if wrong:
            self._tell(f"{name[:8]} lies there, but {wrong[0]} ({len(wrong)} such)")
        else:
            self._whole.add(name)

    def _wrong(self, named: Entry | RangeRef, there: dict[str, ObjectInfo]) -> str:
        """What is wrong with an object or a range that a file names. What no listing told is asked for by itself: it
        may have come while the listing went on."""
        key = named.address if isinstance(named, Entry) else f"{_METADATA}{named.id}"
        found = there.get(key) or self.store.head(f"{self.namespace}/{key}")
        if found is None:
            return f"{key} does not"
        if isinstance(named, Entry) and (found.size, found.etag) != (named.size, named.etag):
            return f"{key} has other content"
        return ""

    def _judge_shown(self, metarange: str) -> None:
        """A commit that is shown: its metarange and all of its ranges were found whole in this look or an earlier one.
        A file that came after this look had listed is read now."""
        ahead = [metarange]
        while ahead:
            name = ahead.pop()
            try:
                refs = self._refs(name)
            except NotFound:
                self._tell(f"a branch shows {metarange[:8]}, but {name[:8]} does not lie there")
                continue
            if name not in self._whole:
                self._judge(name, {})
            ahead += [ref.id for ref in refs]

    def _refs(self, name: str) -> list[RangeRef]:
        if name not in self._named:
            self._named[name] = self._read(name)
        return [one for one in self._named[name] if isinstance(one, RangeRef)]

    def _tell(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)
