"""What may go on for hours once everything stands where it should: the page must not go on calling it well.

Each of these ends again, and everything is in order afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING
from unittest import mock

from django.db.models import F

from jobs.models import Duty
from mirrors.models import Mirror
from tests.promise.looks import ERRORS

if TYPE_CHECKING:
    from tests.promise.world import World

LONG = timedelta(hours=5)
STUBBORN = 4
"""So many rounds fail before it has to be told."""


def go_blind(world: World, listing: str) -> None:
    """The destination does not let its branches, or its tags, be listed."""
    with mock.patch.object(world.lm.eu, listing, side_effect=world.random.choice(ERRORS)):
        world.round()
        looks = ("destination_looked_at", "tags_unseen_since")
        Mirror.objects.update(**{name: F(name) - LONG for name in looks})
        world.round()
        world.reader.read_unseen(listing)
    world.round()


def go_unchecked(world: World) -> None:
    """No check ends, and everything else goes on."""
    checks = Duty.objects.filter(kind="validate")
    checks.update(ended_at=F("ended_at") - LONG, due_at=F("due_at") - LONG)
    world.reader.read_unchecked()
    world.round()


def keep_from_deleting(world: World) -> None:
    """The source deletes a branch and a tag, and the destination does not."""
    error = world.random.choice(ERRORS)
    refusing = [mock.patch.object(world.lm.eu, name, side_effect=error) for name in ("delete_branch", "delete_tag")]
    world.source.unbranch()
    world.source.untag()
    world.source.note_heads()
    with refusing[0], refusing[1]:
        for _ in range(STUBBORN):
            world.round()
        world.reader.read_kept()
    for _ in range(2):
        world.round()


HOURS: tuple[Callable[[World], None], ...] = (
    partial(go_blind, listing="list_branches"),
    partial(go_blind, listing="list_tags"),
    go_unchecked,
    keep_from_deleting,
)
