"""What do expressions match? Tried on the first files of a branch while somebody types them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from adapters.regex import Patterns
from core.exporting.markers import is_marker
from exports.preflight.branch_sample import FirstFiles

SECONDS = 2.0
FIELD = "lastKeysInPrefixRegexp"


@dataclass(frozen=True, slots=True)
class Matched:
    """What one expression matches, of what was tried."""

    pattern: str
    directories: int
    last_keys: int

    @property
    def nothing(self) -> bool:
        """Perhaps it was meant otherwise."""
        return not self.directories and not self.last_keys


@dataclass(frozen=True, slots=True)
class Trial:
    """`marked`: directories that would get a marker, `last_keys`: keys that would come last in theirs; both ascend.
    `each` expression by itself; those that there was no time for are `untried`."""

    files: FirstFiles
    each: Sequence[Matched]
    marked: Sequence[bytes]
    last_keys: Sequence[bytes]
    untried: int

    @property
    def bounded(self) -> bool:
        """Whether there is more than was tried."""
        return self.untried > 0 or not self.files.whole


def try_patterns(patterns: Sequence[str], files: FirstFiles) -> Trial:
    """Raises Invalid, saying which expression is none, where, and what to write instead."""
    Patterns(patterns, field=FIELD)
    ends = time.monotonic() + SECONDS
    each: list[Matched] = []
    marked: set[bytes] = set()
    last: set[bytes] = set()
    for number, pattern in enumerate(patterns):
        if number and time.monotonic() > ends:
            break
        matcher = Patterns([pattern])
        directories = [directory for directory in files.directories if matcher.matches_directory(directory)]
        keys = [key for key in files.keys if matcher.is_last_key(key) and not is_marker(key)]
        each.append(Matched(pattern, len(directories), len(keys)))
        marked.update(directories)
        last.update(keys)
    return Trial(files, each, sorted(marked), sorted(last), len(patterns) - len(each))


def named(names: Iterable[bytes]) -> list[str]:
    """As text; the root is `/`, what is no UTF-8 is shown as \\xNN."""
    return [name.decode("utf-8", "backslashreplace") or "/" for name in names]
