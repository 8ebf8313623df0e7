"""Where in the stores of the regions somebody writes already: each app that does makes its places known."""

from __future__ import annotations

from collections.abc import Callable, Iterator

Places = Callable[[], Iterator[tuple[str, str]]]
"""Gives URIs, each with whose it is, in words."""

_registered: dict[str, Places] = {}


def register_places(app: str, places: Places) -> None:
    """Make known what an app writes to; each process does so when that app is ready."""
    _registered[app] = places


def claimed_places() -> Iterator[tuple[str, str]]:
    """All that was made known, each with whose it is."""
    for places in _registered.values():
        yield from places()
