"""What stores tell of their objects, for whoever wants to hear it: apps above this one make themselves known."""

from __future__ import annotations

from collections.abc import Callable, Collection

Hear = Callable[[str, Collection[tuple[str, str]]], int]
"""Takes a region and objects (bucket, key) that came to its store, or changed; gives of how many it will look at."""

_registered: list[Hear] = []


def register_hearer(hear: Hear) -> None:
    """Have an app told of every object; each process does so when that app is ready."""
    _registered.append(hear)


def tell(region: str, objects: Collection[tuple[str, str]]) -> int:
    """Tell all of them; gives how many objects are looked at for it."""
    return sum(hear(region, objects) for hear in _registered)
