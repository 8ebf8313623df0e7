"""Where in the stores of the regions somebody writes already: each app that does makes its places known, and is told
of those that somebody else is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from core.installations.places import Place

Places = Callable[[], Iterator[tuple[Place, str]]]
"""Gives places, each with whose it is, in words."""
Forget = Callable[[Place], None]
"""Takes a place: what was known of it, from a time when it was one's own, holds no more."""


class _App(NamedTuple):
    places: Places
    forget: Forget


_registered: dict[str, _App] = {}


def register_places(app: str, places: Places, forget: Forget) -> None:
    """Make known what an app writes to; each process does so when that app is ready."""
    _registered[app] = _App(places, forget)


def claimed_places(but: str = "") -> Iterator[tuple[Place, str]]:
    """All that was made known, each with whose it is; `but`: the app that asks, which knows its own."""
    for name, app in _registered.items():
        if name != but:
            yield from app.places()


def give_away(place: Place) -> None:
    """Tell all apps that somebody has a place from now on. Inside of the transaction that gives it to him."""
    for app in _registered.values():
        app.forget(place)
