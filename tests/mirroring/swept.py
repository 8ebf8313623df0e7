"""A mirror that follows its source's garbage collection, and time that passes for its sweeps."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import F

from core.sweeping import Candidate
from jobs.models import Duty
from mirrors.models import Mirror, Sweep
from mirrors.services.sweeps import lists
from mirrors.transitions.duties import follow_collection
from tests.mirrors.harness import NAMESPACE, Deployment

SOURCE = "s3://src/lake"
WEEK = timedelta(days=7, seconds=1)


def follow(lm: Deployment, **settings: object) -> Mirror:
    """The mirror brings its objects itself, and follows the garbage collection."""
    mirror = Mirror.objects.get()
    for name, value in {"object_replication": "managed", "follow_gc": True, **settings}.items():
        setattr(mirror, name, value)
    mirror.follows_all = False
    mirror.save()
    follow_collection(mirror)
    lm.work(1)
    return mirror


def sweep(lm: Deployment) -> Sweep | None:
    """Let the sweep's duty run until it waits for nothing, and the check; gives the last sweep."""
    for _ in range(3):
        for duty in Duty.objects.filter(kind="sweep"):
            lm.run(duty.pk)
        for duty in Duty.objects.filter(kind="validate"):
            lm.run(duty.pk)
    return Sweep.objects.first()


def pass_time(lm: Deployment, by: timedelta = WEEK) -> None:
    """All that sweeps know was so long ago."""
    moments = {name: F(name) - by for name in ("began_at", "looked_at", "deleted_at", "ended_at", "expires_at")}
    Sweep.objects.update(**moments)
    for row in Sweep.objects.exclude(digest="").select_related("mirror"):
        seconds = by.total_seconds()
        older = [
            Candidate(one.address, one.size, one.etag, one.since - seconds) for one in lists.read_found(row.mirror, row)
        ]
        Sweep.objects.filter(pk=row.pk).update(digest=lists.write_found(row.mirror, row, older))


def collect(lm: Deployment) -> list[str]:
    """The source's garbage collection takes what no branch and no tag names; gives the addresses."""
    lake = lm.lake
    heads = {*lake.repository.branches.values(), *lake.repository.tags.values()}
    kept = {entry.address for head in heads for entry in lake.trees[head].values()}
    named = {entry.address for tree in lake.trees.values() for entry in tree.values()}
    gone = sorted(named - kept)
    for address in gone:
        lm.us_store.objects.pop(f"{SOURCE}/{address}", None)
    return gone


def lies_here(lm: Deployment, address: str) -> bool:
    """Whether the mirror has an object."""
    return f"{NAMESPACE}/{address}" in lm.eu_store.objects
