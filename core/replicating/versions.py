"""Which versions and markers of a key a target lacks, and how they get there. Pure: chains in, steps out.

A chain is what a bucket with versioning has of one key, the oldest first; the last one is the latest, which readers
see. Two kinds of target: an *exact* one takes a version under the source's id and time, and so puts it where it belongs
by itself; at a *plain* one everything new is the latest.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from hashlib import sha256
from typing import NamedTuple
from uuid import UUID

NULL = "null"
"""The id of what was written while a bucket had no versioning."""
_FRACTION = re.compile(r"(.*T\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|\+00:00)")


class Version(NamedTuple):
    """A version of a key, or a delete marker, which has neither size nor ETag. `modified` as the store wrote it. `of`:
    of which version it is a copy (`name_of`), as far as somebody asked; "" for anything else."""

    id: str
    size: int = 0
    etag: str = ""
    marker: bool = False
    modified: str = ""
    of: str = ""


Chain = Sequence[Version]


class Step(NamedTuple):
    """What is to be done next at a target: `version`, of the source, becomes the latest there; `exact`: under its own
    id, written at `moment`."""

    version: Version
    exact: bool = False
    moment: str = ""


class Plan(NamedTuple):
    """All that lacks, the oldest first. `conflicts`: versions of the source under whose id the target has something
    else. `unhidable`: the target keeps one version of this key only, so that a marker would delete that."""

    steps: Sequence[Step] = ()
    conflicts: Chain = ()
    unhidable: bool = False

    @property
    def lacks(self) -> bool:
        """Whether the target is not as the source."""
        return bool(self.steps or self.conflicts or self.unhidable)

    @property
    def bytes(self) -> int:
        """So many are to be written."""
        return sum(step.version.size for step in self.steps)


def name_of(version: Version) -> str:
    """What a copy at a plain target calls the version that it is of. Ids are given once, but for `null`."""
    return version.id if version.id != NULL else f"{NULL} {version.etag}"


def fingerprint(chain: Chain) -> str:
    """Names what a key has, 32 hexadecimal digits: another one when a version comes or goes."""
    text = "\n".join(f"{version.id} {version.etag} {version.marker}" for version in chain)
    return sha256(text.encode()).hexdigest()[:32]


def is_exact_id(version_id: str) -> bool:
    """Whether an exact target takes such an id."""
    if version_id == NULL:
        return True
    try:
        return str(UUID(version_id)) == version_id
    except ValueError:
        return False


def is_same(source: Version, there: Version) -> bool:
    """Whether a target's version has what the source's has: by ETag, or because it is known to be its copy."""
    if source.marker or there.marker:
        return source.marker and there.marker
    return source.size == there.size and (source.etag == there.etag or there.of == name_of(source))


def doubts(source: Chain, there: Chain, *, exact: bool) -> list[Version]:
    """Those of the target of which it would help to know what they are copies of: at a plain target other ETags may
    well be the same bytes, in other parts or encrypted; at an exact one the latest may have been put there to show what
    somebody's version hid."""
    unknown = [version for version in there if not version.marker and not version.of]
    if exact:
        ids = {version.id for version in source}
        return [version for version in unknown if version == there[-1] and version.id not in ids]
    sizes = {version.size for version in source if not version.marker}
    etags = {(version.size, version.etag) for version in source if not version.marker}
    return [version for version in unknown if version.size in sizes and (version.size, version.etag) not in etags]


def plan(
    key: str,
    source: Chain,
    there: Chain,
    *,
    exact: bool,
    but: Collection[str] = (),
    markers: bool = True,
    newest: bool = False,
    hides: bool = True,
    shows: bool = True,
) -> Plan:
    """What a target has to be given. `but`: ids of versions that can't be copied, or that nobody wants; `markers`:
    whether markers are copied; `newest`: an exact target may have newer versions of its own, which stay the latest;
    `hides`: whether what the target shows may be hidden by the source's last markers; `shows`: whether the source's
    latest is written once more where something hides it. Who does some of the steps and plans anew goes on where he
    was."""
    wanted = [version for version in source if version.id not in but and (markers or not version.marker)]
    if not wanted:
        return Plan()
    made = _planned(key, source, wanted, there, exact=exact, newest=newest, shows=shows)
    if hides:
        return made
    waits = _hiding(wanted, there, newest=newest)
    return made._replace(steps=[step for step in made.steps if step.version.id not in waits])


def is_shown(there: Chain) -> bool:
    """Whether readers see an object."""
    return bool(there) and not there[-1].marker


def hiding(
    key: str, source: Chain, there: Chain, *, exact: bool, but: Collection[str] = (), newest: bool = False
) -> Version | None:
    """The last marker of those that have to hide at the target what that shows; None: nothing has to be hidden."""
    wanted = [version for version in source if version.id not in but]
    waits = _hiding(wanted, there, newest=newest)
    if not waits:
        return None
    made = plan(key, source, there, exact=exact, but=but, newest=newest)
    return wanted[-1] if any(step.version.id in waits for step in made.steps) else None


def _hiding(wanted: Chain, there: Chain, *, newest: bool) -> set[str]:
    """The markers behind the last version that would hide what the target shows."""
    if not is_shown(there):
        return set()
    at = next((at for at in range(len(wanted), 0, -1) if not wanted[at - 1].marker), 0)
    return {one.id for one in wanted[at:] if not newest or one.modified > there[-1].modified}


def _planned(key: str, source: Chain, wanted: Chain, there: Chain, *, exact: bool, newest: bool, shows: bool) -> Plan:
    latest = wanted[-1] if wanted[-1] == source[-1] else None
    if _keeps_one(key, there):
        older = newest and latest is not None and latest.modified <= there[0].modified
        return Plan() if older else _of_one(wanted, there[0], latest, exact=exact)
    if newest:
        return _merged(wanted, there)
    again = latest if shows else None
    if exact and all(is_exact_id(version.id) for version in source):
        return _exact(wanted, there, again)
    return Plan([Step(version) for version in _plain(wanted, there, again)])


def pairs(
    key: str, source: Chain, there: Chain, *, exact: bool, but: Collection[str] = (), markers: bool = True
) -> dict[str, Version | None]:
    """By the id of each version of the source that is copied: what the target has of it; None: nothing yet."""
    wanted = [version for version in source if version.id not in but and (markers or not version.marker)]
    if _keeps_one(key, there):
        return {version.id: there[0] if is_same(version, there[0]) else None for version in wanted[-1:]}
    if exact and all(is_exact_id(version.id) for version in source):
        found = {version.id: version for version in there}
        return {one.id: found[one.id] if one.id in found and _is_kept(one, found[one.id]) else None for one in wanted}
    made: dict[str, Version | None] = {}
    left = iter(there)
    for version in _without_first_markers(wanted, there):
        made[version.id] = next((other for other in left if is_same(version, other)), None)
    return made


# --- one version only -------------------------------------------------------------------------------------------------


def _keeps_one(key: str, there: Chain) -> bool:
    """MinIO keeps one version of directory objects, `a/`, and no marker."""
    return key.endswith("/") and len(there) == 1 and there[0].id == NULL and not there[0].marker


def _of_one(wanted: Chain, there: Version, latest: Version | None, *, exact: bool) -> Plan:
    if latest is None or is_same(latest, there):
        return Plan()
    if latest.marker:
        return Plan(unhidable=True)
    return Plan([Step(latest, exact and latest.id == NULL, latest.modified)])


# --- a plain target ---------------------------------------------------------------------------------------------------


def _plain(wanted: Chain, there: Chain, latest: Version | None) -> Chain:
    """As many of the source's, from the oldest on, as the target has in the same order are there; the others follow,
    all of them, for nothing can be put between what is there. What is latest at the source is so at the target."""
    wanted = _without_first_markers(wanted, there)
    at = 0
    for version in there:
        if at < len(wanted) and is_same(wanted[at], version):
            at += 1
    if at < len(wanted):
        return wanted[at:]
    if latest is None or not there or is_same(latest, there[-1]):
        return ()
    return (latest,)


def _without_first_markers(wanted: Chain, there: Chain) -> Chain:
    """Markers before the first version hide nothing, and most stores make none then. Where there are only markers the
    last one hides what the target has."""
    first = next((at for at, version in enumerate(wanted) if not version.marker), None)
    if first is not None:
        return wanted[first:]
    return wanted[-1:] if there and not there[-1].marker else ()


# --- an exact target --------------------------------------------------------------------------------------------------


def _exact(wanted: Chain, there: Chain, latest: Version | None) -> Plan:
    found = {version.id: version for version in there}
    conflicts = [version for version in wanted if version.id in found and not _is_kept(version, found[version.id])]
    lacking = [step for step in _dated(wanted) if step.version.id not in found]
    if lacking or conflicts or latest is None or there[-1].id == latest.id or _is_shown(latest, there[-1]):
        return Plan(lacking, conflicts)
    return Plan([Step(latest)])


def _merged(wanted: Chain, there: Chain) -> Plan:
    """Each version lies where its time puts it: what lacks, whatever else is there. Without an id that the target takes
    it would be a new version of both sides, for ever."""
    found = {version.id: version for version in there}
    conflicts = [version for version in wanted if version.id in found and not _is_kept(version, found[version.id])]
    conflicts += [version for version in wanted if not is_exact_id(version.id)]
    lacking = [step for step in _dated(wanted) if step.version.id not in found and is_exact_id(step.version.id)]
    return Plan(lacking, conflicts)


def _is_kept(source: Version, there: Version) -> bool:
    return source.marker == there.marker and (source.marker or (source.size, source.etag) == (there.size, there.etag))


def _is_shown(source: Version, there: Version) -> bool:
    """Whether it was put above what hid the source's latest: of such a one the target has two."""
    return (source.marker and there.marker) or (not source.marker and there.of == name_of(source))


def _dated(wanted: Chain) -> list[Step]:
    """With the times at which they are written: listings tell milliseconds, and of those that were written in the same
    one each is a microsecond later than the one before, for stores put versions in order by their times."""
    steps, same = list[Step](), 0
    for at, version in enumerate(wanted):
        same = same + 1 if at and wanted[at - 1].modified == version.modified else 0
        steps.append(Step(version, True, later_by(version.modified, same)))
    return steps


def later_by(modified: str, microseconds: int) -> str:
    """A listing's time, so much later; as it is where it tells more than milliseconds, or nothing."""
    found = _FRACTION.fullmatch(modified)
    if found is None or len(fraction := found[2] or "") > 3:
        return modified
    return f"{found[1]}.{fraction:0<3}{min(microseconds, 999):03}Z"
