"""The configuration of the file together with installations from elsewhere. What the file says wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

from deployment.config import Config, Installation, Store


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
        own = (self.region, *(name for name in self.dst_endpoints if name != self.region))
        return (*own, *self.added)

    @property
    def served(self) -> tuple[str, ...]:
        """The destinations that this deployment works for."""
        more = [region for region, new in self.added.items() if new.served_by == self.region]
        return (*(self.serve_regions or (self.region,)), *more)

    def lakefs_url(self, region: str) -> str:
        """The lakeFS endpoint of a region; ConfigError if it has none."""
        own = self.added.get(region)
        return own.installation.lakefs_url if own else Config.lakefs_url(self, region)

    def store(self, region: str) -> Store:
        """The object store of a region: nothing of the file's is used for one that the file does not have."""
        own = self.added.get(region)
        return own.installation.store if own else Config.store(self, region)

    def installation(self, region: str) -> Installation:
        """Where a region's lakeFS and store are; ConfigError for a region without an endpoint."""
        own = self.added.get(region)
        return own.installation if own else Config.installation(self, region)


def together(own: Config, added: Sequence[Added]) -> Config:
    """The file's configuration with these, less those that it has itself."""
    more = {new.installation.region: new for new in added if new.installation.region not in own.regions}
    if not more:
        return own
    return Together(**{each.name: getattr(own, each.name) for each in fields(Config)}, added=more)
