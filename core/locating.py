"""Where an object may be read: the order in which places are taken, and what is told of those that were not. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from core.errors import Invalid

USUAL_SECONDS, LEAST_SECONDS, MOST_SECONDS = 900, 60, 3600
"""How long an address is good for."""
LONGEST_PATH = 1024
"""As long as lakeFS lets a path be."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A region that did not answer with the object, and why."""

    region: str
    why: str


@dataclass(frozen=True, slots=True)
class Located:
    """Where an object can be read now. `url` may be used by whoever has it: no log may hold it.

    `fresh`: the ref was asked for at the source now, or names a commit; else it is where a mirror's was last promoted.
    """

    url: str
    expires_at: datetime
    region: str
    address: str
    size: int
    etag: str
    commit: str
    fresh: bool
    tried: tuple[Tried, ...] = ()

    def __repr__(self) -> str:
        return f"Located({self.region}, {self.address}, {self.commit[:8]})"


def check_question(ref: str, path: str, seconds: int) -> None:
    """Raises Invalid for what can name no object, naming the parameter."""
    for field, given in (("ref", ref), ("path", path)):
        if not given or "\0" in given:
            raise Invalid(f"{field} is missing" if not given else f"{field} has a NUL character", field=field)
    if len(path.encode("utf-8", "surrogatepass")) > LONGEST_PATH or len(ref) > LONGEST_PATH:
        field = "ref" if len(ref) > LONGEST_PATH else "path"
        raise Invalid(f"{field} is longer than {LONGEST_PATH:,} bytes", field=field)
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        raise Invalid(f"seconds is {LEAST_SECONDS} to {MOST_SECONDS:,}", field="seconds")


def turn_of(region: str, *, prefer: str, home: str, covered: Collection[str]) -> tuple[bool, bool, bool, str]:
    """What places are ordered by: the preferred region, the one that is asked (the nearest that is known), those where
    a check has found the object."""
    return region != prefer, region != home, region not in covered, region
