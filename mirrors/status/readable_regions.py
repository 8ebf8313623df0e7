"""Which regions can read a commit: its sources, and their mirrors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from core.errors import NotFound
from core.installations.outages import Outage
from core.mirroring.judgement import Judgement, judge_commit
from core.mirroring.readable_regions import Readable, as_seen, at_mirror, at_source
from core.mirroring.rpo import is_stale
from db import clock
from installations import contact
from mirrors.models import Commit, Mirror, MirrorCommit
from mirrors.queries.find_commit import commits_beginning, expect_one
from mirrors.queries.proof_facts import gone_at_source, judge_at
from mirrors.status.commit_json import facts_of
from mirrors.transitions.rpo_breaches import targets, unchecked_since


@dataclass(frozen=True, slots=True)
class RegionStatus:
    """A source or a mirror where a commit may be read. `as_of`: the last look at it, and check of what is there.
    `stale`: that is so long ago that it says nothing about now."""

    region: str
    repository: str
    role: str
    readable: Readable
    as_of: datetime | None
    stale: bool = False

    @property
    def offset(self) -> str:
        """What places are ordered by."""
        return f"{self.region}/{self.repository}"


def places_of(mirrors: Sequence[Mirror], given: str) -> tuple[str, list[RegionStatus]]:
    """The commit whose id begins so, and each source of these mirrors, and each mirror of those, where it may be read.

    `mirrors` come with their sources. What is a mirror and another one's source too stands there once, as the mirror.
    Raises NotFound, Invalid (too short) and Conflict (several commits).
    """
    commits = _find({mirror.source_id for mirror in mirrors}, given)
    rows = _rows(mirrors, commits)
    concerned = [mirror for mirror in mirrors if mirror.source_id in commits]
    by_key, mirror_rows = {mirror.pk: mirror for mirror in concerned}, [rows[m.pk] for m in concerned if m.pk in rows]
    judged = judge_at(by_key, mirror_rows)
    now = clock.now()
    unchecked = unchecked_since(concerned, now)
    mirror_places = [
        _mirror(mirror, rows.get(mirror.pk), judged.get(mirror.pk), unchecked.get(mirror.pk)) for mirror in concerned
    ]
    sources = [_source(commit, rows, concerned, now) for commit in commits.values()]
    outages = {outage.region: outage for outage in reversed(contact.outages(now))}
    places = {place.offset: _as_seen(place, outages, now) for place in (*sources, *mirror_places)}
    sha = next(iter(commits.values())).sha
    return sha, [places[offset] for offset in sorted(places)]


def _find(repositories: set[int], given: str) -> dict[int, Commit]:
    """The commit in each source that has it, by the source's key."""
    commits = commits_beginning(repositories, given)
    shas = list(commits.order_by("sha").values_list("sha", flat=True).distinct()[:4])
    if not shas:
        raise NotFound(f"there is no known commit '{given[:80]}'")
    expect_one(given, shas)
    return {commit.repository_id: commit for commit in commits.filter(sha=shas[0]).select_related("repository")}


def _rows(mirrors: Iterable[Mirror], commits: Mapping[int, Commit]) -> dict[int, MirrorCommit]:
    """How it stands at each mirror that has it, by the mirror's key."""
    rows = MirrorCommit.objects.filter(commit__in=commits.values(), mirror__in=mirrors)
    return {row.mirror_id: row for row in rows.select_related("commit", "waiver")}


def _as_seen(place: RegionStatus, outages: Mapping[str, Outage], now: datetime) -> RegionStatus:
    """What is known of it, by whether its region answers now: to read takes its lakeFS and its store."""
    outage = outages.get(place.region)
    seen = as_seen(place.readable, outage=outage, stale=place.stale, as_of=place.as_of, now=now)
    return replace(place, readable=seen)


def _source(commit: Commit, rows: Mapping[int, MirrorCommit], mirrors: Iterable[Mirror], now: datetime) -> RegionStatus:
    source = commit.repository
    own_mirrors = {mirror.pk: mirror for mirror in mirrors if mirror.source_id == source.pk}
    given_up = any(rows[key].data == MirrorCommit.Data.GONE for key in own_mirrors if key in rows)
    answers = {True} if given_up else set(gone_at_source(own_mirrors, commit).values())
    lost = True if True in answers else None if None in answers else False
    readable = at_source(
        seen_at=commit.seen_at, looked_at=source.looked_at, frozen=bool(source.frozen_reason), gone=lost
    )
    stale = any(is_stale(source.looked_at, now, targets(mirror)) for mirror in own_mirrors.values())
    return RegionStatus(source.region, source.name, "source", readable, source.looked_at, stale)


def _mirror(
    mirror: Mirror, row: MirrorCommit | None, judgement: Judgement | None, unchecked: datetime | None
) -> RegionStatus:
    readable = at_mirror(facts_of(row) if row else None, judgement or judge_commit(None), state=mirror.state)
    looks = [look for look in (mirror.destination_looked_at, unchecked) if look]
    return RegionStatus(mirror.region, mirror.name, "mirror", readable, min(looks, default=None), unchecked is not None)
