"""How the tags of a mirror are doing, for the page and the API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mirrors.models import Mirror, MirrorTag, SourceTag


@dataclass(frozen=True, slots=True)
class TagReading:
    """A tag at both sides; a commit is "" where the tag isn't, or is not followed."""

    name: str
    source_commit: str
    mirror_commit: str
    status: str


def tag_readings(mirror: Mirror, *, after: str = "", amount: int) -> list[TagReading]:
    """The first tags by name, after one of them."""
    source = mirror.source.tags.filter(gone_at=None) if mirror.tags else SourceTag.objects.none()
    theirs = {tag.name: tag for tag in source.filter(name__gt=after).order_by("name")[:amount]}
    ours = {tag.name: tag for tag in mirror.tag_rows.filter(name__gt=after).order_by("name")[:amount]}
    names = sorted(theirs.keys() | ours.keys())[:amount]
    return [_read(mirror, name, theirs.get(name), ours.get(name)) for name in names]


def count_tags(mirror: Mirror) -> int:
    """How many there are to read."""
    ours = mirror.tag_rows.all()
    if not mirror.tags:
        return ours.count()
    return mirror.source.tags.filter(gone_at=None).exclude(name__in=ours.values("name")).count() + ours.count()


def _read(mirror: Mirror, name: str, source: SourceTag | None, ours: MirrorTag | None) -> TagReading:
    there, here = source.commit_id if source else "", ours.commit_id if ours else ""
    return TagReading(name, there, here, _status(mirror, source, ours))


def _status(mirror: Mirror, source: SourceTag | None, ours: MirrorTag | None) -> str:
    if ours is not None and ours.stray:
        return "Not made by this mirror"
    if not mirror.tags:
        return "Not mirrored"
    if source is None:
        return "Gone at source"
    return "Up to date" if ours is not None and ours.commit_id == source.commit_id else "Waiting for its commit"


def tag_json(tag: TagReading) -> dict[str, Any]:
    """A tag as the API gives it."""
    return {
        "name": tag.name,
        "source_commit": tag.source_commit or None,
        "mirror_commit": tag.mirror_commit or None,
        "status": tag.status,
    }
