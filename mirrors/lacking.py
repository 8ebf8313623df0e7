"""Queries for commits and what they lack: which commits in trouble does one need, and which things do those lack?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db.models import Count, F, Min, Q, QuerySet, Window
from django.db.models.functions import RowNumber

from core.facts import CommitFacts, History, Thing, Waiting, Waived
from mirrors.blockers import KEPT_PER_HOLDER
from mirrors.models import Blocker, Commit, Coverage, Mirror, MirrorCommit

Key = tuple[int, str]
"""A mirror's key and the name of a branch, or the id of a commit or of something that blocks it, there."""
OPEN_COMMITS = 5_000
"""So many commits that are not settled are walked to find what a branch waits for; in a first copy there are more."""
TROUBLED = 5
THINGS = 10

FACTS = (
    "record",
    "data",
    "history",
    "detail",
    "recorded_at",
    "metadata_at",
    "validated_at",
    "promoted_at",
    "superseded_at",
)
"""What is known of a commit at a mirror, by the name of its column."""
_WAIVER = ("waiver__given_by", "waiver__reason", "waiver__given_at")
_COMMIT = ("commit__sha", "commit__metarange_id")
_FIELDS = ("mirror_id", "mirror__history", *_COMMIT, "waits_for", "waiver_id", *_WAIVER, *FACTS)
# Until it was looked for a second time it may turn out to be gone at the source too, as what is collected there is.
# An imported object that a mirror allowed before has not changed: the mirror's setting has.
_DAMAGE = Q(damage=True, attempts__gt=1) & ~Q(reason="imported")
_UNSETTLED = Q(history=False) | Q(data__in=["unknown", "waiting"]) | ~Q(record="accepted")


class Commits:
    """Commits at mirrors, gathered once; `facts` by key. What they lack is added for those that are asked about."""

    def __init__(self, shown: Iterable[Key], newest: Iterable[Key]) -> None:
        """`shown`: commits to draw; `newest`: those that branches wait to point at."""
        shown, newest = set(shown), set(newest)
        opened = open_rows(newest)
        self.troubled = _walk(opened)
        needed = {(key[0], sha) for key in newest for sha in self.troubled.get(key, ())}
        rows = {_key(row): row for row in opened if _key(row) in needed} | _rows(shown)
        self.facts = _with_things(rows)

    def needed_by(self, key: Key) -> tuple[CommitFacts, ...]:
        """The commits in trouble that a commit needs, itself included, oldest first."""
        return tuple(self.facts[key[0], sha] for sha in self.troubled.get(key, ()))


def commit_facts(mirror: Mirror, shas: Iterable[str]) -> dict[str, CommitFacts]:
    """The named commits at one mirror, with what they lack."""
    rows = _rows({(mirror.pk, sha) for sha in shas})
    return {sha: facts for (_, sha), facts in _with_things(rows).items()}


def holders_blocking(mirror: Mirror, sha: str) -> list[str]:
    """Whose blockers keep a commit from being promoted: its own, and those of the first commits in trouble it needs."""
    key = (mirror.pk, sha)
    opened = {_key(row): row for row in open_rows({key})}
    needed = _walk(opened.values()).get(key, ())
    rows = _rows({key}) | {other: opened[other] for other in ((mirror.pk, commit) for commit in needed)}
    return list(dict.fromkeys(holder for row in rows.values() for holder in _holders(row)))


def own_blockers(mirror: Mirror, sha: str) -> QuerySet[Blocker]:
    """What a commit lacks itself, its ancestors apart."""
    holders = [holder for row in _rows({(mirror.pk, sha)}).values() for holder in _holders(row)]
    return mirror.blockers.filter(holder_id__in=holders)


# --- commits --------------------------------------------------------------------------------------------------------


def _key(row: Mapping[str, Any]) -> Key:
    return row["mirror_id"], row["commit__sha"]


def _facts(row: Mapping[str, Any]) -> CommitFacts:
    by, reason, at = (row[name] for name in _WAIVER)
    waived = None if row["waiver_id"] is None else Waived(by=by, reason=reason, at=at)
    return CommitFacts(commit_id=row["commit__sha"], waived=waived, **{name: row[name] for name in FACTS})


def _rows(keys: set[Key]) -> dict[Key, dict[str, Any]]:
    if not keys:
        return {}
    mirrors, shas = {key[0] for key in keys}, {key[1] for key in keys}
    named = Commit.objects.filter(repository__mirrors__in=mirrors, sha__in=shas).values("pk")
    rows = MirrorCommit.objects.filter(mirror__in=mirrors, commit__in=named).values(*_FIELDS)
    return {_key(row): row for row in rows if _key(row) in keys}


def open_rows(newest: set[Key]) -> list[dict[str, Any]]:
    """Commits that are not settled, and those that branches wait to point at, parents first."""
    if not newest:
        return []
    mirrors, shas = {key[0] for key in newest}, {key[1] for key in newest}
    heads = Commit.objects.filter(repository__mirrors__in=mirrors, sha__in=shas).values("pk")
    wanted = _UNSETTLED | Q(Q(data="gone") | Q(waiver__isnull=False), commit__in=heads)
    rows = MirrorCommit.objects.filter(wanted, mirror__in=mirrors).order_by("commit_id")
    return list(rows.values(*_FIELDS, "commit__parents")[:OPEN_COMMITS])


def _walk(rows: Iterable[Mapping[str, Any]]) -> dict[Key, tuple[str, ...]]:
    """For each commit the ids of those in trouble that it needs, itself included; `rows` come parents first.

    What is gone at both sides, or waived, is in a head's way, but in no descendant's.
    """
    troubles: dict[Key, tuple[str, ...]] = {}
    passed_on: dict[Key, tuple[str, ...]] = {}
    for row in rows:
        mirror, sha = key = _key(row)
        inherited = dict.fromkeys(
            other for parent in row["commit__parents"] for other in passed_on.get((mirror, parent), ())
        )
        own = (sha,) if _facts(row).in_trouble else ()
        passed_on[key] = (*inherited, *(own if _is_in_the_way(row) else ()))[:TROUBLED]
        troubles[key] = (*inherited, *own)[:TROUBLED]
    return troubles


def _is_in_the_way(row: Mapping[str, Any]) -> bool:
    """Of descendants: one whose record was refused is, waived or not."""
    by_record_only = row["mirror__history"] == History.HEAD
    may_lack = by_record_only or row["data"] == "gone" or row["waiver_id"] is not None
    return not may_lack or row["record"] in ("refused", "tampered")


# --- things ---------------------------------------------------------------------------------------------------------


def _with_things(rows: Mapping[Key, Mapping[str, Any]]) -> dict[Key, CommitFacts]:
    holders = {key: _holders(row) for key, row in rows.items() if _facts(row).in_trouble}
    wanted = {(key[0], holder) for key, some in holders.items() for holder in some}
    things, counts = _things(wanted)
    found = {}
    for key, row in rows.items():
        own = [(key[0], holder) for holder in holders.get(key, ())]
        found[key] = _add_things(_facts(row), [thing for k in own for thing in things.get(k, ())], own, counts)
    return found


def _add_things(facts: CommitFacts, things: list[Thing], own: Sequence[Key], counts: Mapping[Key, int]) -> CommitFacts:
    if not things:
        return facts
    since = min(thing.first_seen for thing in things)
    number = sum(counts.get(key, 0) for key in own)
    return replace(facts, things=tuple(things[:THINGS]), lacking=number, lacking_since=since)


def _holders(row: Mapping[str, Any]) -> list[str]:
    """Whose blockers count for a commit: what it waits for, its metarange, itself."""
    own = (*row["waits_for"], row["commit__metarange_id"], row["commit__sha"])
    return list(dict.fromkeys(holder for holder in own if holder))


def _things(holders: set[Key]) -> tuple[dict[Key, list[Thing]], dict[Key, int]]:
    """What stands in the way, by holder: a few of the things, oldest first, and how many there are."""
    if not holders:
        return {}, {}
    mirrors, ids = {key[0] for key in holders}, {key[1] for key in holders}
    of = {"partition_by": [F("mirror_id"), F("holder_id")]}
    rows = Blocker.objects.filter(mirror__in=mirrors, holder_id__in=ids).annotate(
        place=Window(RowNumber(), order_by=["first_seen", "pk"], **of), number=Window(Count("pk"), **of)
    )
    things: dict[Key, list[Thing]] = defaultdict(list)
    counts: dict[Key, int] = {}
    for row in rows.filter(place__lte=THINGS).order_by("first_seen", "pk"):
        things[row.mirror_id, row.holder_id].append(thing_of(row))
        counts[row.mirror_id, row.holder_id] = row.number
    return things, _all_counted(counts)


def _all_counted(counts: Mapping[Key, int]) -> dict[Key, int]:
    """How many problems a range really has, where only the first were kept by name."""
    mirrors, ids = {key[0] for key in counts}, {key[1] for key in counts}
    rows = Coverage.objects.filter(mirror__in=mirrors, range_id__in=ids, state="waiting")
    known = {
        (mirror, holder): number for mirror, holder, number in rows.values_list("mirror_id", "range_id", "problems")
    }
    return {key: max(number, known.get(key, 0)) for key, number in counts.items()}


def thing_of(row: Blocker) -> Thing:
    """A blocker as the explanations and the API know it."""
    return Thing(
        kind=row.kind,
        holder_id=row.holder_id,
        address=row.address,
        path=row.path,
        size=row.size,
        reason=row.reason,
        detail=row.detail,
        gone_at_source=row.gone_at_source,
        first_seen=row.first_seen,
        attempts=row.attempts,
        look_at=row.look_at,
        id=row.pk,
        etag=row.etag,
        damage=row.damage,
    )


def waiting_at(mirrors: Sequence[Mirror]) -> dict[int, Waiting]:
    """How many different things each mirror waits for in all; one that several ranges name counts once."""
    waited_for = Blocker.objects.filter(mirror__in=mirrors, gone_at_source=False)
    for mirror_id, holders in _only_waived(mirrors).items():
        waited_for = waited_for.exclude(mirror=mirror_id, holder_id__in=holders, damage=False)
    rows = waited_for.order_by().values_list("mirror_id", "kind")
    kinds: dict[int, dict[str, int]] = defaultdict(dict)
    since: dict[int, datetime] = {}
    damaged: dict[int, int] = defaultdict(int)
    examples: dict[int, str] = defaultdict(str)
    for mirror, kind, number, first, lost, path in rows.annotate(
        Count("key", distinct=True),
        Min("first_seen"),
        lost=Count("key", distinct=True, filter=_DAMAGE),
        example=Min("path", filter=_DAMAGE),
    ):
        kinds[mirror][kind] = number
        since[mirror] = min(first, since.get(mirror, first))
        damaged[mirror] += lost
        examples[mirror] = examples[mirror] or path or ""
    more = _cut_short(mirrors) if kinds else set()
    return {
        mirror: Waiting(
            number=sum(its.values()),
            kind=next(iter(its)) if len(its) == 1 else "",
            more=mirror in more,
            since=since[mirror],
            damaged=damaged[mirror],
            example=examples[mirror],
        )
        for mirror, its in kinds.items()
    }


def _only_waived(mirrors: Sequence[Mirror]) -> dict[int, set[str]]:
    """What only waived commits wait for, by mirror: nobody waits for that any more, although it is looked for.

    While a first copy waits for so much that it isn't gone through, all of it counts.
    """
    waived = MirrorCommit.objects.filter(mirror__in=mirrors, waiver__isnull=False, data__in=["unknown", "waiting"])
    held = _waited_for(waived)
    if not held:
        return {}
    others = MirrorCommit.objects.filter(mirror__in=list(held), waiver=None, data="waiting")
    if others.count() > OPEN_COMMITS:
        return {}
    needed = _waited_for(others)
    return {mirror: holders - needed.get(mirror, set()) for mirror, holders in held.items()}


def _waited_for(rows: QuerySet[MirrorCommit]) -> dict[int, set[str]]:
    found: dict[int, set[str]] = defaultdict(set)
    for mirror, waits_for in rows.order_by("-commit_id").values_list("mirror_id", "waits_for")[:OPEN_COMMITS]:
        found[mirror].update(waits_for)
    return found


def damage_at(mirrors: Iterable[Mirror]) -> QuerySet[Blocker]:
    """What had been complete, and is missing or wrong now."""
    return Blocker.objects.filter(_DAMAGE, mirror__in=mirrors)


def is_cut_short(mirror: Mirror) -> bool:
    """Whether it has ranges of which not all problems are kept by name."""
    return bool(_cut_short([mirror]))


def _cut_short(mirrors: Sequence[Mirror]) -> set[int]:
    """Mirrors with ranges of which not all problems are kept by name."""
    rows = Coverage.objects.filter(mirror__in=mirrors, state="waiting", problems__gt=KEPT_PER_HOLDER)
    return set(rows.order_by().values_list("mirror_id", flat=True).distinct())
