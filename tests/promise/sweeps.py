"""The mirror follows its source's garbage collection: what it deletes nobody may need, and is known to be gone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext, suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from core.errors import LakeMirrorError
from mirrors.models import Candidate, HeldMerge, Mirror, Sweep
from mirrors.services.sweeps.approval import sweep_approve, sweep_reject
from mirrors.services.sweeps.asking import sweep_now
from tests.fakes import FakeRemover
from tests.mirroring.swept import pass_time
from tests.mirrors.harness import NAMESPACE
from tests.promise.books import forgotten
from tests.promise.workers import Worker

if TYPE_CHECKING:
    from tests.promise.world import World

HOUR = timedelta(hours=1, seconds=1)


class WatchedRemover(FakeRemover):
    """Tells the reader of each object before it goes; the worker may end, or get no answer, before and after."""

    def __init__(self, world: World) -> None:
        super().__init__(world.lm.eu_store)
        self.world = world

    def delete(self, uris: Sequence[str], seconds: float) -> dict[str, LakeMirrorError]:
        self.world._point()
        for uri in uris:
            with self.world._unseen():
                check_deleted(self.world, uri)
            super().delete([uri], seconds)
            self.world._end_perhaps()
        self.world._point(weather=5)
        return {}


def check_deleted(world: World, uri: str) -> None:
    """Of an object that is just going: nobody needs it, by the books, the refs of both sides, and what is held."""
    key, truth = uri.removeprefix(f"{NAMESPACE}/"), world.truth
    if key.startswith("_"):
        world.reader.tell("swept-wrongly", f"{key} is no object")
    if f"s3://src/lake/{key}" in world.lm.us_store.objects:
        world.reader.tell("swept-wrongly", f"the source has {key}")
    for sha in sorted(kept(world)):
        if key in truth.parts(sha):
            world.reader.tell("swept-wrongly", f"{sha[:8]} names {key}")
    truth.shown.pop(key, None)
    if key in truth.originals:
        truth.found.add(key)
        world.deleted.append(key)


def kept(world: World) -> set[str]:
    """All commits that may need something. A ref of the source counts if it stood there when the round began: one that
    moves in the very moment of a deletion can't be heard of."""
    now = {*world.source.heads.values(), *world.source.tags.values()}
    there = world.there
    refs = {*there.branches.values(), *there.tags.values()} if there else set()
    mirror = Mirror.objects.first()
    rows = set(mirror.commits.values_list("commit__sha", flat=True)) if mirror else set()
    live = Candidate.objects.filter(branch__gone_at=None).values_list("commit__sha", flat=True)
    held = HeldMerge.objects.filter(wanted=True).values_list("commit_id", flat=True)
    return (now & world.refs_at_start) | refs | rows | set(live) | set(held)


def follow(world: World) -> None:
    """It follows the collection, or no more; more or less has to be approved."""
    chance = world.random
    follows, percent = chance.random() < 0.8, chance.choice([100, 100, 0])
    world._update(object_replication="managed", copying_paused=False, follow_gc=follows, delete_percent=percent)


def sweep(world: World) -> None:
    """Weeks pass, and the sweep's turn comes, once or twice; the worker may end. Before that somebody may delete a
    branch, and the source collect what no ref names; meanwhile the books may come back from a backup made before. Then
    anything may come to be needed again."""
    chance = world.random
    if chance.random() < 0.7:
        world._update(paused=False)
        world._update(object_replication="managed", copying_paused=False, follow_gc=True)
        world._run_some(["sense", "manage", "copy", "validate", "promote"])
    back, passed = chance.random() < 0.3, ""
    if back or chance.random() < 0.4:
        passed = _come_and_go(world)
        world.troubles.collect_there()
    with forgotten(world) if back else nullcontext():
        _look(world)
        if back or chance.random() < 0.7:
            _look(world)
    if passed and chance.random() < (0.8 if back else 0.3):
        world.source.heads["passing"] = passed
        world._note_source()
        world._run_some(["sense", "manage", "copy", "validate", "promote", "sense", "copy", "validate", "promote"])
    elif chance.random() < 0.5:
        chance.choice([world.source.branch_at, world.source.reset, world.source.tag, world.source.revert])()
        world._note_source()
    world._run_some(["validate"], Worker(chance.choice([0, 0, chance.randrange(1, 100)])))


def _come_and_go(world: World) -> str:
    """A branch is made, written to and deleted again, and the mirror hears of all of it. Gives the commit that it had
    in the end."""
    heads, lake = world.source.heads, world.source.lake
    start = world.random.choice(sorted(heads.values()))
    heads["passing"] = start
    for _ in range(world.random.randint(1, 2)):
        lake.commit("passing", {f"passing/{lake.clock}": str(lake.clock).encode()})
    world._note_source()
    world._run_some(["sense", "manage", "copy", "validate", "promote"])
    passed = heads.pop("passing", "")
    world._note_source()
    for _ in range(2):
        world._run_some(["sense", "manage", "promote"])
    return passed


def _look(world: World) -> None:
    """A week, days or an hour have passed; somebody wants a sweep now, or not, and approves what was found, or not."""
    chance = world.random
    with suppress(LakeMirrorError):
        pass_time(world.lm, chance.choice([timedelta(days=7, seconds=1), timedelta(days=8), timedelta(days=4), HOUR]))
    for mirror in Mirror.objects.select_related("source") if chance.random() < 0.4 else ():
        with suppress(LakeMirrorError):
            sweep_now(actor=world.owner, mirror=mirror)
    left = chance.randrange(1, 200) if chance.random() < 0.2 else 0
    weather, meddling = chance.choice([(0.0, 0.0), (0.01, 0.0), (0.0, 0.2)])
    for kind in ("sweep", "validate", "sweep"):
        world._run_some([kind], Worker(left, weather, meddling))
    for row in Sweep.objects.filter(state=Sweep.State.WAITING):
        decide = chance.choice([sweep_approve, sweep_approve, sweep_reject])
        with suppress(LakeMirrorError):
            decide(actor=world.owner, mirror=row.mirror, number=row.pk)
