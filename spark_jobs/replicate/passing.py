"""What a pass does with each object of a window, at each target: said by the worker, and by tasks of Spark."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from adapters.places.reader import time_of
from core.replicating.comparing import Alike, by_listing
from core.replicating.eligible import fits, is_copied
from core.replicating.merging import Listed
from core.replicating.passes import Action, ReportRow, What, Why
from spark_jobs.replicate.lacking import Lack
from spark_jobs.replicate.looking import Looker


class PassTold(Protocol):
    """What is asked of a pass: its row, or what tasks are told of it."""

    @property
    def prefix(self) -> str: ...
    @property
    def what(self) -> str: ...
    @property
    def older_than(self) -> datetime | None: ...


class PassedLink(Protocol):
    """The same of a link."""

    @property
    def pk(self) -> int: ...
    @property
    def number(self) -> int: ...


@dataclass
class Judged:
    """What a window has shown: of each link how many objects (and bytes) there are of each action, the rows of the
    report, and what is to be copied."""

    actions: dict[str, dict[str, list[int]]] = field(default_factory=lambda: defaultdict(dict))
    rows: list[ReportRow] = field(default_factory=list)
    lacks: dict[int, list[Lack]] = field(default_factory=lambda: defaultdict(list))
    looked_at: int = 0
    bytes: int = 0

    def add(self, link: PassedLink, item: Listed, action: Action, why: str = "") -> None:
        """One more object of a link."""
        name = f"{action.value}:{why}" if why else action.value
        sums = self.actions[str(link.number)].setdefault(name, [0, 0])
        sums[0], sums[1] = sums[0] + 1, sums[1] + max(0, item.size)
        if action is not Action.EQUAL and why != Why.OWN:
            self.rows.append(ReportRow(link.number, item.key, action.value, item.size, why))


class Judge:
    """Says of each object of a window what a pass does with it at each target."""

    def __init__(self, made: PassTold, looker: Looker, links: Sequence[PassedLink]) -> None:
        self._made, self._looker, self._links = made, looker, links

    def judge(self, window: Any) -> Judged:
        """Where the listings leave it open, by HEAD of both. All targets of the pass are in the window."""
        judged = Judged()
        wanted: list[Listed] = []
        for item in window.items:
            if not item.key.startswith(self._made.prefix):
                continue
            why = self._left_out(item)
            if not why:
                wanted.append(item)
                continue
            for link in self._links:
                judged.add(link, item, Action.SKIP, why)
        lacking = self._lacking(window, wanted)
        for link in self._links:
            lacks = {lack.key: lack for lack in lacking[link.pk]}
            there = window.there[link.pk]
            for item in wanted:
                self._one(judged, link, item, lacks.get(item.key.encode()), there.get(item.key))
        judged.looked_at = len(wanted) * len(self._links)
        judged.bytes = sum(max(0, item.size) for item in wanted) * len(self._links)
        return judged

    def _left_out(self, item: Listed) -> str:
        """Why an object of the source is none of the pass's; "": it is."""
        if not is_copied(item.key):
            return Why.OWN
        if not self._looker.wants(item):
            return Why.FILTER
        older_than = self._made.older_than
        modified = time_of(item.modified) if older_than else None
        return Why.NEWER if older_than and (modified is None or modified >= older_than) else ""

    def _lacking(self, window: Any, items: Sequence[Any]) -> Mapping[int, Sequence[Lack]]:
        """What lacks, by link; or all of it, where everything is sent again."""
        if self._made.what != What.ALL:
            return self._looker.lacking(window, items)
        lacks = [Lack(item.key.encode(), item.size, item.etag) for item in items]
        return self._looker.tagged({link.pk: lacks for link in self._links})

    def _one(self, judged: Judged, link: PassedLink, item: Any, lack: Lack | None, there: Any) -> None:
        if lack is None:
            everything = self._made.what == What.ALL
            left = self._is_left_out(item, there, everything=everything)
            why = Why.TARGET_NEWER if self._looker.rule.both_ways and there is not None else Why.FILTER
            judged.add(link, item, *((Action.SKIP, why) if left else (Action.EQUAL,)))
            return
        judged.lacks[link.pk].append(lack)
        if not fits(self._prefix(link), item.key):
            judged.add(link, item, Action.SKIP, Why.KEY_TOO_LONG)
        elif there is None:
            judged.add(link, item, Action.COPY)
        elif self._made.what == What.ALL and not self._differs(item, there):
            judged.add(link, item, Action.AGAIN)
        else:
            judged.add(link, item, Action.OVERWRITE)

    def _is_left_out(self, item: Any, there: Any, *, everything: bool) -> bool:
        """Whether what is not to be copied is not there as the source has it, for the rule leaves it out."""
        if not isinstance(item, Listed):
            return bool(self._looker.rule.terms.tags) and not there
        return everything or there is None or self._differs(item, there)

    def _differs(self, item: Any, there: Any) -> bool:
        """Whether a target's object is another one, for sure; of chains only a Looker can tell."""
        return isinstance(item, Listed) and by_listing(item.size, item.etag, there) is Alike.DIFFERENT

    def _prefix(self, link: PassedLink) -> str:
        place = self._looker.places.get(link.pk)
        return place.prefix if place is not None else ""
