"""How new content is that several places have, where rules lead in a ring. Pure.

What is equal is never written. So where somebody writes anew what a key has already, the copies that other places have
of it do not hear of that: by their stamps (stamps.py) they are older than they should be, and what somebody wrote in
between at a third place would stay there. Therefore, where a link's target has another object that is newer than the
source's, the places that lead to the source are asked: content is as new as it is at the newest of them that has the
same, by places that all have it.

Nobody needs to be asked where the target leads straight back to the source: what is newer there comes to the source,
and then differs from the newest, too. Nor a place that leads to the target by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from core.installations.places import overlap
from core.replicating.stamps import Stamp, is_newer


class End(NamedTuple):
    """Where a link begins or ends. `store` names the store, whatever the region by which somebody reaches it; `uri`:
    s3://bucket[/prefix], without a last slash."""

    store: str
    region: str
    uri: str

    @property
    def place(self) -> tuple[str, str]:
        """The same for all that begin or end there."""
        return self.store, self.uri


class Way(NamedTuple):
    """A link of a rule that lets the newer object stay. `whole`: the rule leaves nothing of its source out."""

    source: End
    target: End
    whole: bool = True


def upstream(link: Way, ways: Collection[Way]) -> tuple[Way, ...]:
    """Of all ways those by which what a link's source has may have come from places that are to be asked, the nearest
    first."""
    source, target = link.source.place, link.target.place
    direct = {way.source.place for way in ways if way.whole and way.target.place == target} | {source, target}
    if any(way.whole and (way.source.place, way.target.place) == (target, source) for way in ways):
        return ()
    found: list[Way] = []
    ahead = [(link.source, True)]
    for here, straight in ahead:
        for way in ways:
            same = straight and way.target.place == here.place
            if way in found or not _overlap(way.target, here) or (same and way.source.place in direct):
                continue
            found.append(way)
            ahead.append((way.source, same))
    return tuple(found)


def _overlap(one: End, other: End) -> bool:
    return one.store == other.store and overlap(one.uri, other.uri)


Ask = Callable[[Way, str, str], Stamp | None]
"""Of a way, the address of an object at its source and of one at its target: the former's stamp, if it has the same
content; None: there is no such object."""


def newest(at: tuple[str, str], own: Stamp, ways: Sequence[Way], ask: Ask) -> Stamp:
    """The stamp of an object, by its store and whole address, or that of the same content where that is newer. Raises
    what `ask` does."""
    found, ahead = own, [at]
    for store, uri in ahead:
        for way in ways:
            inside = f"{way.target.uri}/"
            if way.target.store != store or not uri.startswith(inside):
                continue
            further = way.source.store, f"{way.source.uri}/{uri.removeprefix(inside)}"
            if further in ahead or (stamp := ask(way, further[1], uri)) is None:
                continue
            ahead.append(further)
            found = stamp if is_newer(stamp, found) else found
    return found
