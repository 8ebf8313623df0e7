"""The configuration of the file together with installations from elsewhere. What the file says wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

from deployment.config import Config, Installation, LakeFSServer, Store


@dataclass(frozen=True, slots=True)
class Added:
    """An installation that the file does not have. `served_by`: the region of the deployment that works for it;
    `problem`: why its secrets can't be used, and `remedy`: what to do then; "" if they can."""

    installation: Installation
    served_by: str
    problem: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Together(Config):
    """A configuration that knows more installations than its file."""

    added: Mapping[str, Added] = field(default_factory=dict)

    @property
    def regions(self) -> tuple[str, ...]:
        """Those of the file, then the others."""
        return (*self.own_regions, *self.added)

    @property
    def lakefs_regions(self) -> tuple[str, ...]:
        """Those of them that have a lakeFS."""
        more = [region for region, new in self.added.items() if new.installation.lakefs is not None]
        return (*self.own_lakefs_regions, *more)

    @property
    def served(self) -> tuple[str, ...]:
        """The regions whose mirrors, and whose rules, this deployment works for."""
        more = [region for region, new in self.added.items() if new.served_by == self.region]
        return tuple(dict.fromkeys((*self.own_served, *more)))

    def lakefs(self, region: str) -> LakeFSServer | None:
        """The lakeFS of a region, if it has one."""
        own = self.added.get(region)
        return own.installation.lakefs if own else Config.lakefs(self, region)

    def store(self, region: str) -> Store:
        """The object store of a region: nothing of the file's is used for one that the file does not have."""
        own = self.added.get(region)
        return own.installation.store if own else Config.store(self, region)

    def installation(self, region: str) -> Installation:
        """A region's store, and its lakeFS if there is one; ConfigError for a region that is not configured."""
        own = self.added.get(region)
        return own.installation if own else Config.installation(self, region)


def together(own: Config, added: Sequence[Added]) -> Config:
    """The file's configuration with these, less those that it has itself."""
    more = {new.installation.region: new for new in added if new.installation.region not in own.regions}
    if not more:
        return own
    return Together(**{each.name: getattr(own, each.name) for each in fields(Config)}, added=more)
