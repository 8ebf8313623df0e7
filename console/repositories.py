"""A repository in a region, as pages over all apps name it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceRepository:
    """A repository in a region, of which there need be no mirror."""

    name: str
    region: str
