"""Queries for commits and what they lack: which commits in trouble does one need, and which things do those lack?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.db.models import Count, F, Min, Q, QuerySet, Window
from django.db.models.functions import RowNumber, Substr

from core.bringing import ObjectReplication
from core.mirroring.facts import ARRIVING, CommitFacts, History, Thing, Waived
from core.mirroring.object_check import address_hash
from mirrors.models import Blocker, Commit, Coverage, Mirror, MirrorCommit
from mirrors.models.querysets import UNCHECKED, BlockerQuerySet
from mirrors.models.waived import is_accepted
from mirrors.queries.find_commit import find_branch, find_commit
from mirrors.queries.metaranges import ranges_at_hand

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
_MIRROR = ("mirror_id", "mirror__history", "mirror__object_replication")
_FIELDS = (*_MIRROR, *_COMMIT, "waits_for", "waiver_id", *_WAIVER, *FACTS)
_UNSETTLED = Q(history=False) | UNCHECKED | ~Q(record=MirrorCommit.Record.ACCEPTED)


class Commits:
    """Commits at mirrors, gathered once; `facts` by key. What they lack is added for those that are asked about."""

    def __init__(self, shown: Iterable[Key], newest: Iterable[Key]) -> None:
        """`shown`: commits to draw; `newest`: those that branches wait to point at."""
        shown, newest = set(shown), set(newest)
        opened = open_rows(newest)
        _judge_now(row for row in opened if _key(row) in newest)
        self.troubled = _walk(opened)
        needed = {(key[0], sha) for key in newest for sha in self.troubled.get(key, ())}
        # What was judged just now goes before what the rows say.
        rows = _rows(shown) | {_key(row): row for row in opened if _key(row) in needed}
        self.facts = _with_things(rows)

    def needed_by(self, key: Key) -> tuple[CommitFacts, ...]:
        """The commits in trouble that a commit needs, itself included, oldest first."""
        return tuple(self.facts[key[0], sha] for sha in self.troubled.get(key, ()))


def commit_facts(mirror: Mirror, shas: Iterable[str]) -> dict[str, CommitFacts]:
    """The named commits at one mirror, with what they lack."""
    rows = _rows({(mirror.pk, sha) for sha in shas})
    _judge_now(rows.values())
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
    managed = row["mirror__object_replication"] == ObjectReplication.MANAGED
    own = {name: row[name] for name in FACTS}
    return CommitFacts(commit_id=row["commit__sha"], waived=waived, managed=managed, **own)


def _judge_now(rows: Iterable[dict[str, Any]]) -> None:
    """A commit that was judged once, and is to be judged again, lacks what is known of its ranges already: that is told
    at once. As far as this machine knows what its metarange names."""
    for row in rows:
        if row["data"] != "unknown" or row["metadata_at"] is None:
            continue
        metarange_id = row["commit__metarange_id"]
        named = [ref.id for ref in ranges_at_hand(metarange_id) or ()]
        known = Blocker.objects.filter(mirror=row["mirror_id"]).held_by([metarange_id, *named]).order_by()
        if holders := sorted(known.values_list("holder_id", flat=True).distinct()[:100]):
            row["data"], row["waits_for"] = "waiting", holders


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
    wanted = _UNSETTLED | Q(Q(data=MirrorCommit.Data.GONE) | Q(waiver__isnull=False), commit__in=heads)
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
    holders = {
        key: [(key[0], holder) for holder in _holders(row)] for key, row in rows.items() if _facts(row).in_trouble
    }
    named = _named({holder for own in holders.values() for holder in own})
    counts = _all_counted({holder: number for holder, (number, _) in named.items()})
    shown = {key: _enough([holder for holder in own if holder in named], named) for key, own in holders.items()}
    things = _things({holder for own in shown.values() for holder in own})
    facts = {}
    for key, row in rows.items():
        lacking = [thing for holder in shown.get(key, ()) for thing in things.get(holder, ())]
        facts[key] = _add_things(_facts(row), lacking, sum(counts.get(holder, 0) for holder in holders.get(key, ())))
    return facts


def _add_things(facts: CommitFacts, things: list[Thing], number: int) -> CommitFacts:
    if not things:
        return facts
    since = min(thing.first_seen for thing in things)
    return replace(facts, things=tuple(things[:THINGS]), lacking=number, lacking_since=since)


def _holders(row: Mapping[str, Any]) -> list[str]:
    """Whose blockers count for a commit: what it waits for, its metarange, itself."""
    own = (*row["waits_for"], row["commit__metarange_id"], row["commit__sha"])
    return list(dict.fromkeys(holder for holder in own if holder))


def _of(holders: set[Key]) -> BlockerQuerySet:
    rows = Blocker.objects.filter(mirror__in={key[0] for key in holders}).order_by()
    return rows.held_by({key[1] for key in holders})


def _named(holders: set[Key]) -> dict[Key, tuple[int, int]]:
    """How many things have names that stand in the way, and the key of the first, by holder. There may be hundreds of
    ranges with a thousand things each, so nothing but the index is read."""
    if not holders:
        return {}
    rows = _of(holders).values_list("mirror_id", "holder_id").annotate(Count("pk"), Min("pk"))
    return {(mirror, holder): (number, first) for mirror, holder, number, first in rows}


def _enough(holders: Sequence[Key], named: Mapping[Key, tuple[int, int]]) -> list[Key]:
    """The first holders that together have as many things as are shown, and the one that misses something longest."""
    number, enough = 0, []
    for holder in holders:
        if number >= THINGS:
            break
        enough.append(holder)
        number += named[holder][0]
    oldest = min(holders, key=lambda holder: named[holder][1], default=None)
    return enough if oldest is None or oldest in enough else [*enough, oldest]


def _things(holders: set[Key]) -> dict[Key, list[Thing]]:
    """A few of what stands in the way, by holder, oldest first."""
    if not holders:
        return {}
    of = {"partition_by": [F("mirror_id"), F("holder_id")]}
    place = Window(RowNumber(), order_by=["first_seen", "pk"], **of)
    first = _of(holders).annotate(place=place).filter(place__lte=THINGS)
    things: dict[Key, list[Thing]] = defaultdict(list)
    for row in Blocker.objects.filter(pk__in=first.values("pk")).order_by("first_seen", "pk"):
        things[row.mirror_id, row.holder_id].append(thing_of(row))
    return things


def _all_counted(counts: Mapping[Key, int]) -> dict[Key, int]:
    """How many problems a range really has, where only the first were kept by name."""
    mirrors, ids = {key[0] for key in counts}, {key[1] for key in counts}
    waiting = Coverage.objects.filter(mirror__in=mirrors, range_id__in=ids, state=Coverage.State.WAITING)
    rows = waiting.exclude(depth="")
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
        waived=row.is_waived,
        **_cause_of(row),
    )


def _cause_of(row: Blocker) -> dict[str, str]:
    """Of what is only awaited, or was not replaced; what else has come, and is wrong, has a reason of its own."""
    if not row.is_explained or is_accepted(row):
        return {}
    return {"cause": row.cause, "cause_told": row.cause_told, "cause_advice": row.cause_advice}


def blockers_of(
    mirror: Mirror,
    *,
    commit: str = "",
    branch: str = "",
    reason: str = "",
    cause: str = "",
    kind: str = "",
    prefix: str = "",
    address: str = "",
) -> QuerySet[Blocker]:
    """What is missing or wrong at a mirror and fits all that is given.

    `commit`: what keeps it from being promoted; `branch`: the same of the newest commit that it is known to have
    pointed to. Raises NotFound, and for a commit whatever `find_commit` does.
    """
    rows = mirror.blockers.needed()
    if commit:
        rows = rows.held_by(holders_blocking(mirror, find_commit(mirror, commit).sha))
    if branch:
        rows = rows.held_by(holders_blocking(mirror, find_branch(mirror, branch).head))
    if prefix:
        # Not startswith, which SQLite answers without regard to case.
        rows = rows.alias(beginning=Substr("path", 1, len(prefix))).filter(beginning=prefix)
    if address:
        rows = rows.filter(address_hash=address_hash(address))
    if cause:
        rows = rows.filter(reason__in=ARRIVING, gone_at_source=False)
    exactly = {"reason": reason, "cause": cause, "kind": kind}
    return rows.filter(**{name: value for name, value in exactly.items() if value})
