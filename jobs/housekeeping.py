"""What apps want done every few seconds beside their duties: each registers it when it is ready."""

from __future__ import annotations

from collections.abc import Callable

_before_each_tick: list[Callable[[], object]] = []
_every_few_seconds: list[Callable[[], object]] = []


def register(act: Callable[[], object]) -> None:
    """To be done every few seconds, by whichever controller comes by."""
    _every_few_seconds.append(act)


def register_refresh(act: Callable[[], object]) -> None:
    """To be done by every controller before it looks for what is due."""
    _before_each_tick.append(act)


def refresh() -> None:
    """Before a look."""
    for act in _before_each_tick:
        act()


def look_round() -> None:
    """Every few seconds."""
    for act in _every_few_seconds:
        act()
