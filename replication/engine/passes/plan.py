"""What a pass looks at: its rule and links, or those that somebody only thinks of; and what is to be done with what."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adapters.places.reader import time_of
from core.replicating.comparing import Alike, by_listing
from core.replicating.eligible import fits, is_copied
from core.replicating.merging import Listed
from core.replicating.passes import Action, ReportRow, What, Why
from replication.engine.looking import Looker
from replication.models import Link, Pass, Rule
from replication.transitions.ledger import Lack


def rule_of(made: Pass) -> tuple[Rule, list[Link]]:
    """The rule, and the links that the pass is of, as far as they are still there. Of a wish they are in no table:
    their keys are below zero."""
    if made.rule is not None:
        if made.link is not None:
            return made.rule, [made.link]
        links = made.rule.links.filter(removing=False).order_by("number")
        # One of the version before has written down no targets as it began.
        return made.rule, [link for link in links if not made.actions or str(link.number) in made.actions]
    return imagined(made.wish, made.began_at)


def imagined(wish: Mapping[str, Any], now: Any) -> tuple[Rule, list[Link]]:
    """A rule that somebody thinks of, as if it were made now, with its links."""
    columns = {column.name for column in Rule._meta.fields} - {"id", "labels"}
    given = {name: value for name, value in wish.items() if name in columns}
    rule = Rule(**given | {"created_at": now, "changed_at": now})
    of_link = {column.name for column in Link._meta.fields} - {"id"}
    links = [
        Link(pk=-number, rule=rule, number=number, **{name: value for name, value in one.items() if name in of_link})
        for number, one in enumerate(wish["targets"], 1)
    ]
    return rule, links


@dataclass
class Judged:
    """What a window has shown: of each link how many objects (and bytes) there are of each action, the rows of the
    report, and what is to be copied."""

    actions: dict[str, dict[str, list[int]]] = field(default_factory=lambda: defaultdict(dict))
    rows: list[ReportRow] = field(default_factory=list)
    lacks: dict[int, list[Lack]] = field(default_factory=lambda: defaultdict(list))
    looked_at: int = 0
    bytes: int = 0

    def add(self, link: Link, item: Listed, action: Action, why: str = "") -> None:
        """One more object of a link."""
        name = f"{action.value}:{why}" if why else action.value
        sums = self.actions[str(link.number)].setdefault(name, [0, 0])
        sums[0], sums[1] = sums[0] + 1, sums[1] + max(0, item.size)
        if action is not Action.EQUAL and why != Why.OWN:
            self.rows.append(ReportRow(link.number, item.key, action.value, item.size, why))


class Judge:
    """Says of each object of a window what a pass does with it at each target."""

    def __init__(self, made: Pass, looker: Looker, links: Sequence[Link]) -> None:
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

    def _one(self, judged: Judged, link: Link, item: Any, lack: Lack | None, there: Any) -> None:
        if lack is None:
            everything = self._made.what == What.ALL
            left = isinstance(item, Listed) and (everything or there is None or self._differs(item, there))
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

    def _differs(self, item: Any, there: Any) -> bool:
        """Whether a target's object is another one, for sure; of chains only a Looker can tell."""
        return isinstance(item, Listed) and by_listing(item.size, item.etag, there) is Alike.DIFFERENT

    def _prefix(self, link: Link) -> str:
        place = self._looker.places.get(link.pk)
        return place.prefix if place is not None else ""
