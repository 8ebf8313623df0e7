"""A pass: one look through what a rule copies, which brings what lacks or only tells what it would do. Pure.

Keys are relative to the place, as UTF-8 bytes, as the ledger has them.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from core.errors import Invalid
from core.replicating.states import Code
from core.text.phrases import count

LONGEST_PREFIX = 1024
LAST = "\U0010ffff"
"""The letter that is listed behind all others."""
PATIENCE = 6
"""An object that failed so often in a row for a reason that may pass has failed for the pass; it is tried on."""
Actions = Mapping[str, Mapping[str, list[int]]]
"""By the link's number and the action (with why, after a colon): how many objects, and their bytes."""


class PassKind(StrEnum):
    """Resync: what lacks is copied. Dry run: nothing is written, and told what would be."""

    RESYNC = "resync"
    DRY_RUN = "dry-run"


class What(StrEnum):
    """Missing: what a target lacks, or has otherwise. All: everything is sent again, also what is equal."""

    MISSING = "missing"
    ALL = "all"


class PassState(StrEnum):
    """How a pass stands, and how it ended."""

    RUNNING = "running"
    COMPLETED = "completed"
    WITH_FAILURES = "completed-with-failures"
    NOTHING = "nothing-eligible"
    FAILED = "failed"
    CANCELED = "canceled"


class Action(StrEnum):
    """What is to be done with an object at a target. Again: it is equal there, and sent all the same."""

    COPY = "copy"
    OVERWRITE = "overwrite"
    AGAIN = "again"
    EQUAL = "equal"
    SKIP = "skip"
    FAILED = "failed"


class Why(StrEnum):
    """Why an object of the source is left out."""

    OWN = "own"
    FILTER = "filter"
    NEWER = "newer"
    TARGET_NEWER = "target-newer"
    KEY_TOO_LONG = Code.KEY_TOO_LONG.value


WHY_WORDS: Mapping[str, str] = {
    Why.OWN: "LakeMirror's own",
    Why.FILTER: "not what the rule copies",
    Why.NEWER: "not older than asked",
    Why.TARGET_NEWER: "the target has a newer one",
    Why.KEY_TOO_LONG: "its key would be longer than 1,024 bytes at the target",
}


class ReportRow(NamedTuple):
    """An object in the report of a pass. `link`: the target's number; `code`: why it is skipped or has failed."""

    link: int
    key: str
    action: str
    size: int
    code: str = ""
    message: str = ""


def pack(rows: Iterable[ReportRow]) -> bytes:
    """Rows as they are kept."""
    return zlib.compress(json.dumps([list(row) for row in rows], ensure_ascii=False).encode("utf-8", "surrogatepass"))


def unpack(data: bytes) -> Iterator[ReportRow]:
    """The rows that were packed."""
    for row in json.loads(zlib.decompress(data).decode("utf-8", "surrogatepass")):
        yield ReportRow(*row)


# --- what is looked through -------------------------------------------------------------------------------------------


class Stretch(NamedTuple):
    """Keys after `low` up to `high`, with it; None: to the end."""

    low: bytes
    high: bytes | None


def below(stretches: Iterable[Stretch], prefix: str) -> list[Stretch]:
    """What of the stretches may hold keys that begin with a prefix."""
    if not prefix:
        return list(stretches)
    first, last = before(prefix).encode(), _last(prefix).encode()
    found = []
    for low, high in stretches:
        cut = Stretch(max(low, first), last if high is None else min(high, last))
        if cut.high is not None and cut.low < cut.high:
            found.append(cut)
    return found


def before(prefix: str) -> str:
    """A key that comes before all that begin with a prefix, and behind nearly all others that do."""
    stem, number = prefix[:-1], ord(prefix[-1])
    if number <= 1:
        return stem
    return stem + chr(0xD7FF if number == 0xE000 else number - 1) + LAST


def _last(prefix: str) -> str:
    """What no key that begins with a prefix comes behind."""
    return prefix + LAST * ((LONGEST_PREFIX - len(prefix.encode())) // 4 + 1)


def check_prefix(prefix: str) -> str:
    """The prefix as it is. Raises Invalid for what no key begins with."""
    if "\0" in prefix or any("\ud800" <= letter <= "\udfff" for letter in prefix):
        raise Invalid("no key begins with that: it has a character that keys can't have", field="prefix")
    if len(prefix.encode()) > LONGEST_PREFIX:
        raise Invalid("no key is that long: keys have at most 1,024 bytes", field="prefix")
    return prefix


# --- how it ends ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Seen:
    """What a pass has seen by its end. `actions` of one target, or of several."""

    actions: Actions
    failed: int
    prefix: str
    older_than: datetime | None


def end_of(seen: Seen) -> tuple[PassState, str]:
    """How a pass ends that has read every stretch and waits for no object, and why."""
    eligible = sum(n for of in seen.actions.values() for action, (n, _) in of.items() if not _is_skip(action))
    if seen.failed:
        return PassState.WITH_FAILURES, f"{count(seen.failed, 'object')} could not be copied"
    if eligible:
        return PassState.COMPLETED, ""
    return PassState.NOTHING, _why_nothing(seen)


def _is_skip(action: str) -> bool:
    return action.partition(":")[0] == Action.SKIP and action.partition(":")[2] != Why.KEY_TOO_LONG


def _why_nothing(seen: Seen) -> str:
    skipped: dict[str, int] = {}
    for of in seen.actions.values():
        for action, (number, _) in of.items():
            why = action.partition(":")[2]
            if why != Why.OWN:
                skipped[why] = max(skipped.get(why, 0), number)
    where = f"whose key begins with '{seen.prefix}'" if seen.prefix else ""
    if not skipped:
        return f"the source has no object {where}".strip()
    told = [f"{count(number, 'object')} {WHY_WORDS.get(why, why)}" for why, number in sorted(skipped.items())]
    return f"the source has no object {where} that is to be copied: {', '.join(told)}".replace("  ", " ")


# --- how far it is ----------------------------------------------------------------------------------------------------


class Progress(NamedTuple):
    """`total`: objects, None while nobody knows; `estimate`: it is one. `done` of them are as they should be, or have
    failed. Seconds until the end, as far as that can be told."""

    total: int | None
    estimate: bool
    done: int
    per_second: float | None
    eta: float | None

    @property
    def percent(self) -> int | None:
        """Of the total, at most 99 before the end."""
        return None if not self.total else min(99, int(100 * self.done / self.total))


def progress_of(
    *, total: int | None, read: bool, looked_at: int, waiting: int, seconds: float, pace: float | None
) -> Progress:
    """How far a pass is: `looked_at` objects of the source in so many seconds, of which `waiting` are not at their
    target yet, which the link brings with a `pace` of so many a second (None: nobody knows). `read`: all are looked at.
    """
    known = looked_at if read else None if total is None else max(total, looked_at)
    done = looked_at - waiting
    per_second = done / seconds if seconds > 0 and done > 0 else None
    reading = 0.0 if read else None
    if not read and known is not None and looked_at and seconds > 0:
        reading = (known - looked_at) * seconds / looked_at
    copying = 0.0 if not waiting else waiting / pace if pace else None
    eta = None if reading is None or copying is None else max(reading, copying)
    return Progress(known, not read, done, per_second, eta)
