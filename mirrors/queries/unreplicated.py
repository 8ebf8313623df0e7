"""If the source failed now: which commits are at no branch of a mirror, and what of theirs has not arrived?

Of a long history so much is read at most, and then everything that is told is a lower bound.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from core.mirroring.unreplicated import Painting, Tally, group_tally
from db.chunks import chunks
from mirrors.models import Coverage, Mirror, MirrorBranch, MirrorCommit, Repository
from mirrors.models.problem import KEPT_PER_HOLDER
from mirrors.models.querysets import UNCHECKED
from mirrors.queries.ancestors import highest_key
from mirrors.queries.branch_positions import BranchPosition, positions_of
from mirrors.queries.own_moves import where_put
from mirrors.queries.proof_facts import is_at_its_store

FIRST_WINDOW, LAST_WINDOW, MOST_ROWS = 50, 1000, 10_000
"""Commits that are read at once, and in all."""
KEPT_IDS = 100
"""A waiting commit notes so many of the things that it waits for."""
MOST_HOLDERS, MOST_THINGS = 2_000, 20_000


@dataclass(frozen=True, slots=True)
class Missing:
    """Objects that have not arrived, and their bytes; None where that isn't known. `unchecked` commits are why. `gone`:
    so many commits lack something that the source has lost too, which isn't counted."""

    objects: int | None
    bytes: int | None
    unchecked: int
    at_least: bool = False
    gone: int = 0


@dataclass(frozen=True, slots=True)
class Loss:
    """What would be lost of a branch, or of the mirror as a whole; `at_least` if that isn't all of it."""

    tally: Tally
    missing: Missing
    at_least: bool


@dataclass(frozen=True, slots=True)
class Losses:
    """Of a mirror, and of those branches that were asked for, by name. So many in all are `behind` the source's, and so
    many, `unproven`, show what is not proven whole at the mirror: what is missing of that is not counted, nor what is
    of `waived` commits. `leaving`: so many commits are only on branches that the last look did not find at the source,
    whose deletion is not confirmed yet."""

    together: Loss
    branches: Sequence[tuple[BranchPosition, Loss]]
    behind: int
    unproven: int
    waived: int
    leaving: int = 0


def losses_of(mirror: Mirror, after: str, amount: int) -> Losses:
    """What would be lost of the whole mirror, and of so many of its branches, by name."""
    places = positions_of(mirror)
    behind = [place for place in places if place.behind or place.unread_head]
    shown = [place for place in behind if place.key[1] > after][:amount]
    own_places = {place.key: _own_place(place.mirror) for place in places if place.mirror and not place.mirror.stray}
    staying = [place for place in behind if place.source and place.source.missing_since is None]
    asked = [behind, staying, *([place] for place in shown)]
    painting = Painting([_heads(group) for group in asked], own_places.values())
    tallies: dict[int, Tally] = defaultdict(Tally)
    for groups, key, committer, seen_at in descend(mirror.source, painting):
        tallies[groups].add(key, committer, seen_at)
    things, more = MissingThings(mirror, [key for tally in tallies.values() for key in tally.keys]), not painting.done
    counted = [_with_unread(group_tally(tallies, number), group) for number, group in enumerate(asked)]
    together, *single = [_loss(tally, things, more) for tally in (counted[0], *counted[2:])]
    leaving = counted[0].commits - counted[1].commits
    unproven = sum(place.unproven for place in places) + _lost_and_unproven(mirror, places, own_places)
    if not is_at_its_store(mirror):
        unproven = sum(head != "" for head in own_places.values())
    branches = list(zip(shown, single, strict=True))
    return Losses(together, branches, len(behind), unproven, _waived(mirror), leaving)


def _own_place(branch: MirrorBranch) -> str:
    """Where the mirror has a branch by its own doing: where somebody else put it, nothing need be whole."""
    put = where_put(branch) if branch.misplaced else None
    return put.commit_id if put else "" if branch.misplaced else branch.head


def _waived(mirror: Mirror) -> int:
    """How many commits are waived, and not known to be whole or lost at the source too."""
    return mirror.commits.filter(waiver__isnull=False).filter(UNCHECKED).count()


def _lost_and_unproven(
    mirror: Mirror, places: Sequence[BranchPosition], own_places: Mapping[tuple[int, str], str]
) -> int:
    """How many branches somebody else took away from a commit that is not proven whole either."""
    moved = [place.key for place in places if place.mirror and place.mirror.misplaced and not place.unproven]
    commits = [own_places[key] for key in moved if own_places.get(key)]
    whole = mirror.commits.promotable().filter(commit__repository=mirror.source_id)
    proven = set[str]()
    for some in chunks(commits):
        proven.update(whole.filter(commit__sha__in=some).values_list("commit__sha", flat=True))
    return sum(commit not in proven for commit in commits)


def _heads(places: Sequence[BranchPosition]) -> list[str]:
    return [place.source.head for place in places if place.source and place.source.head]


def _with_unread(tally: Tally, places: Iterable[BranchPosition]) -> Tally:
    """With the heads of some branches whose history can't be read: each of these heads once."""
    since: dict[str, datetime] = {}
    for place in places:
        if place.unread_head and place.source and place.source.unread_since:
            first = since.setdefault(place.unread_head, place.source.unread_since)
            since[place.unread_head] = min(first, place.source.unread_since)
    for first in since.values():
        tally.add_unread(first)
    return tally


def _loss(tally: Tally, things: MissingThings, more: bool) -> Loss:
    missing = things.missing_of(tally.keys)
    if tally.unread:
        missing = Missing(None, None, missing.unchecked + tally.unread)
    return Loss(tally, missing, more or missing.at_least or tally.unread > 0)


# --- commits ----------------------------------------------------------------------------------------------------------


def descend(source: Repository, painting: Painting) -> Iterator[tuple[int, int, str, datetime]]:
    """Groups, key, committer and first sight of the commits that belong to a group, children first.

    Keys only fall on the way from child to parent. So rows are read downwards, and where few commits are ahead, what
    lies between them is passed over. After MOST_ROWS it ends, and the painting is not done.
    """
    size, read, top = FIRST_WINDOW, 0, highest_key(source, painting.ahead, None)
    while not painting.done and top is not None and read < MOST_ROWS:
        rows = source.commits.filter(pk__lte=top).order_by("-pk")
        lines = list(rows.values_list("pk", "sha", "parents", "committer", "seen_at")[:size])
        for key, sha, parents, committer, seen_at in lines:
            if groups := painting.visit(sha, parents):
                yield groups, key, committer, seen_at
        read += len(lines)
        top = highest_key(source, painting.ahead, lines[-1][0] - 1) if lines else None
        size = min(4 * size, LAST_WINDOW)


# --- objects ----------------------------------------------------------------------------------------------------------


class MissingThings:
    """What some commits of a mirror lack, as far as the checks have told."""

    def __init__(self, mirror: Mirror, keys: Sequence[int]) -> None:
        self._mirror = mirror
        self._here = is_at_its_store(mirror)
        self._waits_for: dict[int, list[str]] = {}
        self._known: set[int] = set()
        self._gone: set[int] = set()
        for some in chunks(sorted(keys)):
            rows = mirror.commits.filter(commit_id__in=some)
            self._known.update(rows.filter(data=MirrorCommit.Data.COMPLETE).values_list("commit_id", flat=True))
            self._gone.update(rows.filter(data=MirrorCommit.Data.GONE).values_list("commit_id", flat=True))
            self._waits_for.update(rows.filter(data=MirrorCommit.Data.WAITING).values_list("commit_id", "waits_for"))
        self._count_waived()
        holders = sorted({holder for ids in self._waits_for.values() for holder in ids})
        self._holders = holders[:MOST_HOLDERS]
        self._things, self._cut_short = self._load()
        self._checked = self._load_checked()

    def _count_waived(self) -> None:
        """What is waived is gone at the mirror alone: the source's failure would lose it."""
        waived = set(self._mirror.blockers.filter(waived=True).order_by().values_list("holder_id", flat=True))
        for some in chunks(sorted(self._gone) if waived else []):
            rows = self._mirror.commits.filter(commit_id__in=some).values_list("commit_id", "waits_for")
            for key, waits_for in rows:
                if own := [holder for holder in waits_for if holder in waived]:
                    self._waits_for[key] = own
                if waits_for and waived.issuperset(waits_for):
                    self._gone.discard(key)

    def _load(self) -> tuple[dict[str, dict[str, tuple[str, int | None]]], bool]:
        """Kind and size of the missing things of each holder, by their keys; and whether there are more of them."""
        rows = self._mirror.blockers.held_by(self._holders).filter(gone_at_source=False)
        lines = list(rows.order_by().values_list("holder_id", "key", "kind", "size")[: MOST_THINGS + 1])
        things: dict[str, dict[str, tuple[str, int | None]]] = defaultdict(dict)
        for holder, key, kind, size in lines:
            things[holder][key] = kind, size
        return things, len(lines) > MOST_THINGS

    def _load_checked(self) -> dict[str, bool]:
        """Ranges of which every object was looked for, and whether all that is missing is kept by name."""
        rows = Coverage.objects.filter(mirror=self._mirror, range_id__in=self._holders, doubt=Coverage.Doubt.NONE)
        rows = rows.exclude(depth="").exclude(looked=None)
        ranges = rows.exclude(state=Coverage.State.COMPLETE).values_list("range_id", "problems")
        return {range_id: problems <= KEPT_PER_HOLDER for range_id, problems in ranges}

    def missing_of(self, keys: Sequence[int]) -> Missing:
        """Of these commits together, each object once."""
        unchecked = sum(not self._is_checked(key) for key in keys)
        if unchecked:
            return Missing(None, None, unchecked)
        holders = {holder for key in keys for holder in self._waits_for.get(key, ())}
        sizes = {key: size for holder in holders for key, (_, size) in self._things.get(holder, {}).items()}
        known = [size for size in sizes.values() if size is not None]
        whole = not self._cut_short and all(self._checked[holder] for holder in holders)
        total = sum(known) if len(known) == len(sizes) else None
        return Missing(len(sizes), total, 0, at_least=not whole, gone=len(self._gone.intersection(keys)))

    def _is_checked(self, key: int) -> bool:
        """Whether all objects of a commit were looked for: its metarange and ranges are at the mirror's store."""
        holders = self._waits_for.get(key)
        if not self._here:
            return False
        if holders is None:
            return key in self._known or key in self._gone
        return 0 < len(holders) < KEPT_IDS and all(map(self._is_looked_through, holders))

    def _is_looked_through(self, holder: str) -> bool:
        return holder in self._checked and all(kind == "object" for kind, _ in self._things.get(holder, {}).values())
