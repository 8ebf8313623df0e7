"""Which deletions at a source are followed at a target, and when somebody has to approve them first. Pure.

Only what a link has copied, or has seen to be equal, is its own; only its own is ever deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from core.replicating.eligible import is_own
from core.replicating.versions import Chain, Version, name_of, pairs

DELETE_PERCENT = 10
DELETE_MOST = 10_000
MOST_MOST = 10**9
APPROVAL_DAYS = 7
SECONDS_BETWEEN = 60.0
"""From one definite 404 of the source to the one right before a deletion, at least."""
UNANSWERED_SECONDS = 95.0
"""Longer than a store may take to carry out what it gave no answer to."""
FIRST_KEYS = 100
"""So many keys an approval names."""
FIRST_FOREIGN = 20
"""So many keys are named of what is at a target alone, and not a link's."""
NO_MARKS: Mapping[str, str] = MappingProxyType({})


MARKER = "marker"
"""What stands for the ETag of a delete marker, which has none."""


class Own(NamedTuple):
    """An object at a target that is the link's own, as it is there. `source`: of rules that lead both ways, the mark of
    what it is a copy of (both_ways/tombstones.py); "": nobody knows. Where all versions are copied, one `version` of
    it, or a delete marker, and `of` which version of the source it is a copy (`versions.name_of`)."""

    key: str
    size: int
    etag: str
    source: str = ""
    version: str = ""
    of: str = ""


@dataclass(frozen=True, slots=True)
class Merged:
    """What source, target and manifest say together of a stretch of keys. `own`: what the manifest has from now on, in
    order; `gone`: those of it that the source has no more; `foreign`: so many are at the target alone, and not ours;
    `strangers`: the first of these."""

    own: list[Own] = field(default_factory=list)
    gone: list[Own] = field(default_factory=list)
    foreign: int = 0
    strangers: Sequence[str] = ()


def merge(
    source: Collection[str],
    equal: Collection[str],
    there: Mapping[str, tuple[int, str]],
    known: Mapping[str, Own],
    marks: Mapping[str, str] = NO_MARKS,
) -> Merged:
    """All keys of a stretch: what the source has, and which of that the target has `equal`; what is at the target (size
    and ETag); what is `known` to be ours; the `marks` of what the source has, where somebody wants them. What somebody
    has overwritten at the target is not ours any more."""
    merged, held, same = Merged(), frozenset(source), frozenset(equal)
    foreign, strangers = 0, list[str]()
    for key in sorted(there):
        size, etag = there[key]
        if is_own(key) or not key:
            continue
        ours = known.get(key)
        if key in same or (ours is not None and etag and ours.etag == etag):
            mark = marks.get(key, "") if key in same else ours.source if ours is not None else ""
            merged.own.append(Own(key, size, etag, mark))
            if key not in held:
                merged.gone.append(merged.own[-1])
        elif key not in held:
            foreign += 1
            if foreign <= FIRST_FOREIGN:
                strangers.append(key)
    return Merged(merged.own, merged.gone, foreign, strangers)


def merge_versions(
    key: str, source: Chain, there: Chain, known: Mapping[str, Own], *, exact: bool, but: Collection[str] = ()
) -> tuple[list[Own], list[Own]]:
    """What of a key's versions at a target is the link's own, and which of these are copies of what the source has no
    more. `known`: the link's own by their ids there, each of one version of the source, whatever else has the same
    content; what is there beside them is its own where it is as the source's other versions are (`versions.pairs`)."""
    own = {one.id: known[one.id] for one in there if one.id in known and known[one.id].etag == _etag(one)}
    covered = {one.of for one in own.values()}
    rest = {version.id: version for version in source if name_of(version) not in covered}
    others = [one for one in there if one.id not in own]
    for version, found in pairs(key, list(rest.values()), others, exact=exact, but=but).items() if rest else ():
        if found is not None:
            own[found.id] = Own(key, found.size, _etag(found), version=found.id, of=name_of(rest[version]))
    listed = [own[one.id] for one in there if one.id in own]
    names = {name_of(version) for version in source}
    return listed, [one for one in listed if one.of not in names]


def _etag(version: Version) -> str:
    return MARKER if version.marker else version.etag


def needs_approval(number: int, of: int, percent: int, most: int, lately: int = 0) -> bool:
    """Whether so many deletions are too many for a link that has `of` objects, and let `lately` so many through within
    24 hours that nobody approved: else frequent looks would wear a target down, a little each time."""
    return number + lately > most or (number + lately) * 100 > percent * (of + lately)


def of_last_day(by_hour: Mapping[str, int], hour: int) -> dict[str, int]:
    """Of deletions by the hour in which they were let through, counted since 1970, those of 24 hours. What a clock
    noted that was ahead counts as of this hour."""
    kept: dict[str, int] = {}
    for noted, number in by_hour.items():
        at = min(int(noted), hour)
        if at >= hour - 24:
            kept[str(at)] = kept.get(str(at), 0) + number
    return kept
