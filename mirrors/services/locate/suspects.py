"""Of ranges that may name an object those that don't, by their own files.

What is kept of ranges are checksums of addresses. Checksums collide, and whoever may stage an entry chooses the
address; and a range that was built on one that names an object may not name it any more. Were such ranges put in
question too, each look at the object would take down for nothing what a check has found.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial

from core.mirroring.doubt import Suspect
from jobs.concurrent_calls import ask_all
from mirrors.services.locate.entries import Holder, Named, names_address
from mirrors.transitions.seen_missing import complete_that_may_name

LIMIT, SECONDS = 8, 3.0
"""So many files are read at once, and so long altogether: what was not read by then may name it."""
REMEMBERED = 100_000

_without: set[tuple[str, str]] = set()
"""Ranges, each with an address that it does not name: a range's id is that of its content, so that is so for good."""
_lock = threading.Lock()


def without_it(mirror: int, holders: Sequence[Holder], named: Named, suspect: Suspect) -> set[str]:
    """Complete ranges of a mirror that may name an object by what is kept of them, and were read and don't. `named`:
    the object, and a range that does name it. Asks stores, outside of any transaction; what they don't give, or not in
    time, is none of these."""
    asked = complete_that_may_name(mirror, suspect) - {named.range_id}
    known = {range_id for range_id in asked if (range_id, named.address) in _without}
    new = sorted(asked - known)
    if not new:
        return known
    calls = {range_id: partial(names_address, holders, range_id, named.address) for range_id in new}
    found = {range_id for range_id, told in ask_all(calls, limit=LIMIT, seconds=SECONDS).items() if told is False}
    with _lock:
        if len(_without) + len(found) > REMEMBERED:
            _without.clear()
        _without.update((range_id, named.address) for range_id in found)
    return known | found


def forget() -> None:
    """As in a process that has just begun."""
    _without.clear()
