"""Files that a native mirror's stores have not brought, or not rightly, copied once because somebody asked for it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from core.errors import Conflict
from mirrors.services.backlog import bringing_stop, files_bring
from mirrors.transitions.causes import awaited, wrong

if TYPE_CHECKING:
    from tests.promise.world import World


def bring_some(world: World) -> None:
    """Any of what is awaited."""
    mirror = world._mirror()
    addresses = sorted(set(awaited(mirror).values_list("address", flat=True))) if mirror else []
    if mirror and addresses:
        some = world.random.sample(addresses, world.random.randint(1, len(addresses)))
        with suppress(Conflict):
            files_bring(actor=world.owner, mirror=mirror, addresses=some)


def bring_all(world: World) -> None:
    """All that is missing now."""
    if mirror := world._mirror():
        with suppress(Conflict):
            files_bring(actor=world.owner, mirror=mirror)


def replace_some(world: World) -> None:
    """Any of what arrived with other content."""
    mirror = world._mirror()
    addresses = sorted(set(wrong(mirror).values_list("address", flat=True))) if mirror else []
    if mirror and addresses:
        some = world.random.sample(addresses, world.random.randint(1, len(addresses)))
        with suppress(Conflict):
            files_bring(actor=world.owner, mirror=mirror, addresses=some, replace=True)


def stop_bringing(world: World) -> None:
    """Nothing more of it is copied."""
    if mirror := world._mirror():
        bringing_stop(actor=world.owner, mirror=mirror)
