"""How the tags of a mirror are doing, for the page and the API."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from core.mirroring.rpo import is_destination_stale
from core.mirroring.states import State
from db import clock
from db.chunks import chunks
from mirrors.models import Mirror, MirrorCommit, MirrorTag, SourceTag
from mirrors.status.facts import standing_of
from mirrors.status.outages import unreached
from mirrors.transitions.rpo_breaches import targets, unchecked_since

WAITING = "Waiting for its commit"
NAME_TAKEN = "Name taken by a branch"
_LACKING = (MirrorCommit.Data.WAITING, MirrorCommit.Data.GONE)


@dataclass(frozen=True, slots=True)
class TagReading:
    """A tag at both sides; a commit is "" where the tag isn't, or is not followed. `unread`: nothing else is known of
    the source's."""

    name: str
    source_commit: str
    mirror_commit: str
    status: str
    unread: bool = False


def tag_readings(mirror: Mirror, *, after: str = "", amount: int) -> list[TagReading]:
    """The first tags by name, after one of them."""
    source = _at_source(mirror) if mirror.tags else SourceTag.objects.none()
    source_tags = {tag.name: tag for tag in source.filter(name__gt=after).order_by("name")[:amount]}
    mirror_tags = {tag.name: tag for tag in mirror.tag_rows.filter(name__gt=after).order_by("name")[:amount]}
    names = sorted(source_tags.keys() | mirror_tags.keys())[:amount]
    standing = _standing(
        mirror, {_commit_at_mirror(tag) for tag in mirror_tags.values()} & {_named(tag) for tag in source_tags.values()}
    )
    if not _is_seen(mirror, clock.now()):
        standing = {
            sha: word if word != State.UP_TO_DATE.word else State.UNKNOWN.word for sha, word in standing.items()
        }
    branches = set(mirror.branches.filter(name__in=names).exclude(head="").values_list("name", flat=True))
    readings = (_read(mirror, name, source_tags.get(name), mirror_tags.get(name), standing) for name in names)
    return [
        replace(tag, status=NAME_TAKEN) if tag.status == WAITING and tag.name in branches else tag for tag in readings
    ]


def _at_source(mirror: Mirror) -> QuerySet[SourceTag]:
    """Those that the source has, as far as is known. Of some the names alone are kept, for a look to find them gone."""
    ours = Q(name__in=mirror.tag_rows.values("name"))
    return mirror.source.tags.filter(gone_at=None).exclude(Q(commit_id="", unread_commit="") & ~ours)


def _is_seen(mirror: Mirror, now: datetime) -> bool:
    """Whether the mirror works as it should, and its destination's tags were seen lately, as those of the source."""
    if standing_of(mirror, now) is not None:
        return False
    unseen = is_destination_stale(mirror.tags_unseen_since, now, targets(mirror))
    return not unseen and not unchecked_since([mirror], now) and not unreached([mirror], now)


def count_tags(mirror: Mirror) -> int:
    """How many there are to read."""
    mirror_tags = mirror.tag_rows.all()
    if not mirror.tags:
        return mirror_tags.count()
    return _at_source(mirror).exclude(name__in=mirror_tags.values("name")).count() + mirror_tags.count()


def _standing(mirror: Mirror, shas: Collection[str]) -> dict[str, str]:
    """How a tag does that is where the source has it, by its commit: what readers of a tag meet is known of that."""
    standing = dict.fromkeys(shas, "Not proven")
    for some in chunks(sorted(shas)):
        rows = mirror.commits.filter(commit__repository=mirror.source_id, commit__sha__in=some)
        standing |= dict.fromkeys(rows.filter(data__in=_LACKING).values_list("commit__sha", flat=True), "Damaged")
        standing |= dict.fromkeys(rows.promotable().values_list("commit__sha", flat=True), State.UP_TO_DATE.word)
    return standing


def _named(source: SourceTag) -> str:
    """The commit that the source's tag names now, although it can't be read."""
    return source.unread_commit or source.commit_id


def _commit_at_mirror(tag: MirrorTag) -> str:
    """The commit that the mirror's tag names now, whoever saw to that; "" if there is none."""
    return tag.commit_id if tag.stands_at is None else tag.stands_at


def _read(
    mirror: Mirror, name: str, source: SourceTag | None, mirror_tag: MirrorTag | None, standing: Mapping[str, str]
) -> TagReading:
    source_commit, mirror_commit = _named(source) if source else "", _commit_at_mirror(mirror_tag) if mirror_tag else ""
    unread = source is not None and source.unread_commit != ""
    return TagReading(name, source_commit, mirror_commit, _status(mirror, source, mirror_tag, standing), unread)


def _status(mirror: Mirror, source: SourceTag | None, mirror_tag: MirrorTag | None, standing: Mapping[str, str]) -> str:
    together = source is not None and mirror_tag is not None and _commit_at_mirror(mirror_tag) == _named(source) != ""
    if mirror_tag is not None and mirror_tag.stray and not together:
        return "Not made by this mirror"
    if not mirror.tags:
        return "Not mirrored"
    if source is None:
        return "Gone at source"
    if together:
        return standing[_named(source)]
    if mirror_tag is not None and mirror_tag.commit_id and mirror_tag.stands_at is not None:
        return State.TAMPERED.word
    return "Unreadable at source" if source.unread_commit else WAITING


def tag_json(tag: TagReading) -> dict[str, Any]:
    """A tag as the API gives it."""
    return {
        "name": tag.name,
        "source_commit": tag.source_commit or None,
        "mirror_commit": tag.mirror_commit or None,
        "status": tag.status,
    }
