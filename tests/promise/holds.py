"""Merges that lakeFS asks about: what is acknowledged has to be whole, and what is no head yet is shown to nobody."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from unittest import mock

from core.errors import LakeMirrorError
from db import clock
from mirrors.models import HeldMerge, Mirror
from mirrors.services.holds import hold
from tests.promise.reader import read_books

if TYPE_CHECKING:
    from tests.promise.world import World

RESTS = 3


def set_policy(world: World) -> None:
    """Some branches are held, or none any more."""
    choices: list[list[dict[str, Any]]] = [[], [policy("*")], [policy("*", "allow")], [policy("b*"), policy("main")]]
    world._update(hold=world.random.choice(choices))


def policy(branches: str, when_late: str = "refuse") -> dict[str, Any]:
    return {"branches": branches, "copies": 1, "hold_seconds": 45, "when_late": when_late}


def ask_for_merge(world: World) -> None:
    """A merge commit of two branches that neither points to: lakeFS asks, and moves the branch if it may. Now and then
    it does not after all, or does although it was refused; workers work meanwhile, or not."""
    heads, chance, lake = world.source.heads, world.random, world.source.lake
    into, source = chance.choice(sorted(heads)), chance.choice(sorted(heads))
    before = heads[into]
    tree = lake.trees[before] | lake.trees[heads[source]]
    commit = lake.record_tree((before, heads[source]), tree, f"held merge {lake.clock}")
    world.truth.note_originals()
    rests = chance.randrange(RESTS + 1)

    def rest(seconds: float) -> None:
        nonlocal rests
        chance.choice([world.work, world.round, world.troubles.arrive, world.troubles.lose, world.pause])()
        world._note_source()
        rests -= 1
        if rests < 0:
            HeldMerge.objects.update(until=clock.now() - timedelta(seconds=1))

    question = hold.Question("us-east-1", "lake", into, commit, source, 1, 60)
    answer = None
    with mock.patch.object(hold, "rest", rest), suppress(LakeMirrorError):
        answer = hold.merge_hold(question)
    released = HeldMerge.objects.filter(commit_id=commit, state=HeldMerge.State.RELEASED).exists()
    if answer is not None and released != (answer.goes_on and bool(answer.complete_in)) and released:
        world.reader.tell("released-unheard", f"{commit[:8]} is released, and {answer.message}")
    if released:
        check_released(world, commit)
    goes_on = answer is not None and answer.goes_on
    if heads.get(into) == before and chance.random() < (0.8 if goes_on else 0.1):
        heads[into] = commit


def check_released(world: World, commit: str) -> None:
    """What was acknowledged is whole by all that is known, and was seen to be whole by the engine."""
    books = read_books()
    if books is None or not Mirror.objects.filter(state=Mirror.State.ACTIVE).exists():
        world.reader.tell("released-wrongly", f"{commit[:8]} without a mirror")
        return
    problems = world.reader.known(books, commit) or world.reader.unproven(books, commit, books.mirror.depth)
    if problems:
        world.reader.tell("released-wrongly", f"{commit[:8]}: {'; '.join(problems[:3])}")
