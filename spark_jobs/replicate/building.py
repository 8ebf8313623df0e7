"""What copies the objects of a link, built from plain values: by the worker, and by tasks of Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from adapters.places.describer import Describer
from core.bringing import Unbrought
from core.replicating.both_ways.upstream import Way
from core.replicating.eligible import in_time
from core.replicating.outcomes import LATE, Outcome, of_error
from core.travelling.describing import Terms
from spark_jobs.replicate import chains
from spark_jobs.replicate.both_ways import Bars, CopyingBothWays, Origins, Upstream
from spark_jobs.replicate.carrying import Carrying, carrying_of
from spark_jobs.replicate.copying import Copying, Wanted
from spark_jobs.replicate.pins import Pin, StaleTarget
from spark_jobs.replicate.version_copying import VersionCopying


@dataclass(frozen=True, slots=True)
class HowCopied:
    """How a link copies: the regions of both places; when its rule was made, and which objects it wants by that; what
    goes with the bytes. `newest`: the newer of two objects stays; `sure`: what is there counts as equal only if the
    source has it still; `all_versions`, to a target that keeps their ids if `exact`, and loses copies of
    what the source has purged if `purges`; `ways`: by which places that lead to the source are asked how new content
    is."""

    source_region: str
    target_region: str
    made: datetime
    existing: bool = True
    new: bool = True
    terms: Terms = Terms()
    newest: bool = False
    sure: bool = False
    all_versions: bool = False
    exact: bool = False
    purges: bool = False
    ways: tuple[Way, ...] = ()

    @property
    def chains(self) -> chains.Terms:
        """How chains are compared where copies are noted and made: what hides something waits until it has been judged,
        and so does what shows something where it may be that only a purge has not been done yet."""
        return chains.Terms(self.exact, self.newest, hides=False, shows=not self.purges, markers=not self.terms.tags)

    def wants(self, modified: datetime | None) -> bool:
        """Whether an object that was last written then is copied; None: nobody knows when."""
        return in_time(modified, self.made, existing=self.existing, new=self.new)


class Signs(NamedTuple):
    """What signs proofs of parts, and where copies came from."""

    proofs: str
    stamps: str


class Copies(Protocol):
    """What copies one object. Raises nothing: all that happens is an outcome."""

    def copy(self, wanted: Wanted) -> Outcome: ...


@dataclass
class PinnedCopying:
    """Copies only to a target that is the pinned one."""

    copying: Copies
    pin: Pin

    def copy(self, wanted: Wanted) -> Outcome:
        """As the one that it stands for."""
        try:
            self.pin.check()
        except StaleTarget:
            return LATE
        except Unbrought as unbrought:
            return of_error(unbrought)
        return self.copying.copy(wanted)


@dataclass
class Between:
    """Two places of a link, what moves objects from one to the other, and the pin of the target. Of a link that copies
    all versions the places tell of these. `now` tells the time, `stopped` that nothing more may begin."""

    source: Any
    target: Any
    mover: Any
    pin: Pin
    signs: Signs
    stopped: Callable[[], bool]
    now: Callable[[], datetime]
    describer_of: Callable[[Any], Any] = Describer
    bars: Bars | None = None
    """What must not be brought back, where rules lead both ways and follow deletions."""
    place: Callable[[str, str], Any] | None = None
    """Opens a place by its region and URI."""

    def versions(self, how: HowCopied) -> VersionCopying:
        """What copies all versions from one to the other."""
        wants = None if how.existing and how.new else how.wants
        carrying = self._carrying(how)
        return VersionCopying(self.source, self.target, self.mover, how.chains, self.stopped, wants, carrying)

    def _carrying(self, how: HowCopied) -> Carrying | None:
        return carrying_of(how.terms, self.source, self.target, self.now, self.describer_of)

    def copying(self, how: HowCopied, versions: VersionCopying | None = None) -> Copies:
        """What copies objects from one to the other: `versions`, if these are all copied, or a new one."""
        wants = None if how.existing and how.new else how.wants
        if how.all_versions:
            return PinnedCopying(versions or self.versions(how), self.pin)
        carrying, proofs = self._carrying(how), self.signs.proofs
        given = (self.source, self.target, self.mover, proofs, self.stopped, wants, carrying, self.pin.check)
        if how.newest:
            asks = upstream_of(how.ways, self.place, self.signs, self.now)
            origins = Origins(how.source_region, how.target_region, self.signs.stamps, self.now, asks)
            return CopyingBothWays(origins, self.bars, *given)
        return Copying(*given, sure=how.sure)


def upstream_of(
    ways: Sequence[Way], place: Callable[[str, str], Any] | None, signs: Signs, now: Callable[[], datetime]
) -> Upstream | None:
    """What asks the places that lead to a link's source by these ways; None: there are none. `place` opens one by its
    region and URI."""
    return Upstream(ways, place, signs.stamps, signs.proofs, now) if ways and place is not None else None
