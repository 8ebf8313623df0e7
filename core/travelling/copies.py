"""Which versions at a target have to be described as one of the source is: those that stand for it. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import NamedTuple

from core.replicating.versions import Chain, Version, is_exact_id, is_same, name_of, pairs


class Pair(NamedTuple):
    """A version of the source, and one of the target that stands for it."""

    own: Version
    there: Version


def copies(
    key: str,
    source: Chain,
    there: Chain,
    *,
    exact: bool,
    but: Collection[str] = (),
    markers: bool = True,
    purges: bool = False,
) -> list[Pair]:
    """Each version of the source that is copied with those of the target that stand for it, in their order; no
    markers, which nothing describes. `but`, `markers`: as those of `versions.plan`; `there`: with what they are copies
    of, as far as anybody knows; `purges`: copies of what the source has no more are to go, and stand for nothing.

    A version may have several copies: one that was written again on top, for readers see that, and at a plain target
    those that were written again after what lacked in the middle. Each copy stands for one version only.
    """
    wanted = {version.id: version for version in source if version.id not in but and not version.marker}
    paired = pairs(key, source, there, exact=exact, but=but, markers=markers)
    names = {name_of(version): version for version in wanted.values()}
    named = {one.id: names[one.of].id for one in there if one.of in names and is_same(names[one.of], one)}
    if exact and all(is_exact_id(one.id) for one in source):
        found = named | {copy.id: own for own, copy in paired.items() if copy is not None}
    else:
        found = _plain(named, paired)
        latest = wanted.get(source[-1].id) if source and there else None
        if latest is not None and is_same(latest, there[-1]) and not (purges and there[-1].of):
            found.setdefault(there[-1].id, latest.id)
    by_id = {one.id: one for one in there if not one.marker}
    made = [Pair(wanted[found[id_]], copy) for id_, copy in by_id.items() if found.get(id_) in wanted]
    order = {id_: at for at, id_ in enumerate(wanted)}
    return sorted(made, key=lambda pair: order[pair.own.id])


def _plain(named: Mapping[str, str], paired: Mapping[str, Version | None]) -> dict[str, str]:
    """By the ids of copies. What a copy says that it is of goes first; what no copy names has the one that is in its
    place, unless that is the only one of the version that it names."""
    found = dict(named)
    for own, copy in paired.items():
        if copy is None or own in found.values():
            continue
        holder = found.get(copy.id)
        if holder is None or list(found.values()).count(holder) > 1:
            found[copy.id] = own
    return found


def digest_of(described: Mapping[str, str]) -> str:
    """Names how versions are described, by their ids: 32 hexadecimal digits, other ones when one of them changes."""
    return sha256(json.dumps(sorted(described.items())).encode()).hexdigest()[:32]
