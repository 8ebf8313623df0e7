"""What do some heads lead to that others don't? And of that: how much, by whom, since when? Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from core.mirroring.rpo import in_words
from core.text.phrases import Phrase, count, name, say, sentence, sentences

_KEPT = 1
NAMED_AUTHORS = 3


class Painting:
    """Commits of a history, visited children first: to each the groups of heads that lead to it.

    What a `kept` head leads to belongs to no group. So it is done when nothing of a group is left to visit, and that is
    mostly long before the history ends.
    """

    def __init__(self, groups: Sequence[Iterable[str]], kept: Iterable[str]) -> None:
        self._paint: dict[str, int] = {}
        for number, heads in enumerate(groups, start=1):
            for head in heads:
                self._paint[head] = self._paint.get(head, 0) | 1 << number
        for head in kept:
            self._paint[head] = _KEPT

    @property
    def ahead(self) -> Collection[str]:
        """Commits that are led to, and not visited yet."""
        return self._paint.keys()

    @property
    def done(self) -> bool:
        """Whether all of the groups' commits were visited."""
        return all(paint & _KEPT for paint in self._paint.values())

    def visit(self, sha: str, parents: Iterable[str]) -> int:
        """The groups of a commit, as bits from 1 << 0 for the first one; 0 for none."""
        paint = self._paint.pop(sha, 0)
        if paint & _KEPT:
            paint = _KEPT
        if paint:
            for parent in parents:
                self._paint[parent] = self._paint.get(parent, 0) | paint
        return paint >> 1


@dataclass(slots=True)
class Tally:
    """Some commits: how many, by whom, the first sight of the oldest. An `unread` one is a head whose history can't be
    read: one commit at least, by nobody knows whom. `keys` are those of the others."""

    commits: int = 0
    unread: int = 0
    authors: Counter[str] = field(default_factory=Counter)
    oldest: datetime | None = None
    keys: list[int] = field(default_factory=list)

    def add(self, key: int, author: str, seen_at: datetime) -> None:
        """Count one more."""
        self.commits += 1
        self.authors[author] += 1
        self.oldest = seen_at if self.oldest is None else min(self.oldest, seen_at)
        self.keys.append(key)

    def add_unread(self, seen_at: datetime) -> None:
        """Count a head that was seen, and whose history can't be read."""
        self.commits += 1
        self.unread += 1
        self.authors[""] += 1
        self.oldest = seen_at if self.oldest is None else min(self.oldest, seen_at)


def group_tally(tallies: Mapping[int, Tally], number: int) -> Tally:
    """Of commits that were counted by their groups: those of one group."""
    total = Tally()
    for groups, tally in tallies.items():
        if groups >> number & 1:
            total.commits += tally.commits
            total.authors += tally.authors
            total.oldest = min(filter(None, (total.oldest, tally.oldest)), default=None)
            total.keys += tally.keys
    return total


def say_loss(
    *,
    source_region: str,
    tally: Tally,
    at_least: bool,
    objects: int | None,
    unchecked: int,
    unproven: int,
    seen: bool,
    gone: int = 0,
    doubts: Sequence[str] = (),
    leaving: int = 0,
    summed: int | None = None,
    unread_for: float | None = None,
) -> Phrase:
    """What would be lost if a source failed now. `objects` is None while nobody knows their number;
    `gone`: so many of the commits lack what the source has lost too; `unproven`: how many branches of the mirror show
    what is not proven whole there; `doubts` are what else keeps that from being all. `leaving`: so many are only on
    branches that the last look did not find. `summed`: how many commits the other branches are behind, added up, where
    that stands beside it: it is told why the two differ. `unread_for`: seconds since the last look, if that is longer
    than usual."""
    if not seen:
        return sentence(f"{source_region} has not been read yet: what would be lost if it failed now is not known")
    begins = f"if {source_region} failed now, "
    shows = count(unproven, "branch shows", "branches show")
    unsure = [f"{shows} a commit that is not known to be complete"] if unproven else []
    doubted = f", but {'; '.join([*unsure, *doubts])}" if unsure or doubts else ""
    unread = _unread(source_region, unread_for)
    if not tally.commits:
        elsewhere = ": what branches are behind is on others" if summed else ""
        return sentences(sentence(begins, "no commit seen so far would be lost", elsewhere, doubted), unread)
    number = ("at least " if at_least else "") + count(tally.commits, "commit")
    clauses = [f"{number} by {_by(tally.authors)} would be lost{_beside(tally.commits, leaving, summed)}"]
    if objects is None:
        clauses.append(f"the objects of {count(unchecked, 'commit')} have not been checked yet")
    elif objects:
        clauses.append(f"{count(objects, 'object is', 'objects are')} missing or wrong at the mirror")
    elif not gone:
        clauses.append("all of their objects have arrived")
    if gone:
        clauses.append(f"{count(gone, 'of them lacks', 'of them lack')} what {source_region} has lost too")
    return sentences(sentence(begins, "; ".join(clauses), doubted), unread)


def _unread(source_region: str, seconds: float | None) -> Phrase:
    """Nobody knows what was committed since the last look."""
    if seconds is None:
        return say()
    ago = in_words(seconds)
    return sentence(name(source_region), f" was last read {ago} ago; what was committed there after that is not known")


def _beside(commits: int, leaving: int, summed: int | None) -> str:
    """Why that is not how many commits branches are behind: those count what they pointed to, each for itself. Here
    what was merged counts too, each commit once, and branches that seem to be deleted are not left out."""
    told, staying = [], commits - leaving
    if leaving:
        whose = "" if leaving == commits else f"{leaving:,} of them "
        told.append(f"{whose}only on branches that the last check did not find there any more")
    if summed is not None and staying > summed:
        told.append(f"with merged ones, which 'behind' leaves out: the branches are {count(summed, 'commit')} behind")
    if summed is not None and staying < summed:
        told.append(f"branches are {count(summed, 'commit')} behind, added up: some lack the same ones")
    return f" ({'; '.join(told)})" if told else ""


def _by(authors: Mapping[str, int]) -> str:
    """The most frequent ones by name."""
    named = [who or "unknown" for who, _ in Counter(authors).most_common(NAMED_AUTHORS)]
    more = len(authors) - len(named)
    *first, last = [*named, count(more, "other")] if more else named
    return f"{', '.join(first)} and {last}" if first else last
