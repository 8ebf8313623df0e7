"""What Spark's tasks are told of a link whose objects they copy: plain values, no secrets but sealed ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

from adapters.places.reader import PlaceReader
from adapters.places.state import StatePlace
from adapters.places.version_writes import VersionMover
from adapters.places.versions import VersionedPlace
from adapters.s3.fast_store import FastObjectStore
from adapters.s3.mover import PARTS_AT_ONCE, Mover
from adapters.s3.store_keys import sealed_text
from core.bringing import LEAST_BYTES_PER_SECOND
from core.errors import Denied, Invalid
from core.exporting.deadline import Deadline, Rate
from core.mirroring.content_proof import UPLOAD_MARKS
from core.store_access import EXECUTORS_KEY
from spark_jobs.check.settings import StoreLocation, is_one_store, store_at
from spark_jobs.replicate.building import HowCopied, Signs
from spark_jobs.replicate.pins import PinTold

TASKS = 8
"""So many tasks share what a slice copies, and the link's limits."""
TRIES = 2
"""So often a request is tried at once: the ledger tries again later, and a link should be known to be down soon."""
SPARE_CONNECTIONS = 8


@dataclass(frozen=True, slots=True)
class Limits:
    """What a link may at a time: objects at once, and bytes and objects a second (0: any number)."""

    workers: int
    bytes_per_second: float = 0.0
    objects_per_second: float = 0.0

    def most_tasks(self, tasks: int = TASKS) -> int:
        """So many tasks can share them, each with a worker of its own and enough to read a piece a second."""
        by_bytes = self.bytes_per_second // LEAST_BYTES_PER_SECOND if self.bytes_per_second else tasks
        by_objects = self.objects_per_second if self.objects_per_second else tasks
        return max(1, int(min(tasks, self.workers, by_bytes, by_objects)))

    def shared(self, tasks: int) -> Limits:
        """What one of so many tasks may."""
        share = max(1, tasks)
        workers = max(1, self.workers // share)
        return Limits(workers, self.bytes_per_second / share, self.objects_per_second / share)


@dataclass(frozen=True, slots=True)
class CopySettings:
    """Both places of a link; how it copies, and what its pin says; until when (Unix time) anything may be begun, and
    how fast.

    `state`: below which changed limits are told meanwhile, under the name `control`, to the tasks of this `job`.
    `proofs`, `stamps`: what signs these, sealed. `others`: places that lead to the source, and are asked how new
    content is, as far as they are configured.
    """

    source: StoreLocation
    target: StoreLocation
    how: HowCopied
    pin: PinTold
    until: float
    limits: Limits
    state: StoreLocation
    control: str
    job: str
    proofs: str = ""
    stamps: str = ""
    others: tuple[StoreLocation, ...] = ()

    def shared(self, tasks: int) -> CopySettings:
        """For one of so many tasks."""
        return replace(self, limits=self.limits.shared(tasks))


def store_of(place: StoreLocation, settings: CopySettings) -> FastObjectStore:
    """The store of a place, one client per process."""
    connections = settings.limits.workers + PARTS_AT_ONCE + SPARE_CONNECTIONS
    return store_at(replace(place, namespace=""), TRIES, connections)


def reader_of(place: StoreLocation, settings: CopySettings) -> PlaceReader:
    """What reads a place, of all versions where these are copied."""
    kind = VersionedPlace if settings.how.all_versions else PlaceReader
    return kind(store_of(place, settings), place.namespace)


def other_of(region: str, uri: str, settings: CopySettings) -> PlaceReader:
    """What reads a place that leads to the source. Raises Invalid for one that nothing was told of."""
    for place in settings.others:
        if (place.region, place.namespace) == (region, uri):
            return PlaceReader(store_of(place, settings), uri)
    raise Invalid(f"the region {region} is not configured")


def state_of(place: StoreLocation, settings: CopySettings) -> StatePlace:
    """The folder of LakeMirror's own below a place."""
    return StatePlace(store_of(place, settings), place.namespace, tries=1)


def mover_of(settings: CopySettings) -> Mover | VersionMover:
    """What moves objects from one place to the other."""
    source, target = store_of(settings.source, settings), store_of(settings.target, settings)
    deadline, limits = Deadline(settings.until), settings.limits
    marks = f"{settings.target.namespace.rstrip('/')}/{UPLOAD_MARKS}"
    rates = {"rate": Rate(limits.bytes_per_second), "objects": Rate(limits.objects_per_second)}
    if settings.how.all_versions:
        return VersionMover(source, target, deadline, marks=marks, tries=TRIES, **rates)
    within, key = is_one_store(settings.source, settings.target), signs_of(settings).proofs
    return Mover(source, target, deadline, within=within, proof_key=key, marks=marks, tries=TRIES, **rates)


def signs_of(settings: CopySettings) -> Signs:
    """What signs, opened. Raises Denied where it can't be: who can't read what copies say of themselves would take them
    for objects that somebody wrote."""
    return opened(settings.proofs, settings.stamps)


def opened(sealed_proofs: str, sealed_stamps: str) -> Signs:
    """The same of what came sealed."""
    proofs, stamps = sealed_text(sealed_proofs), sealed_text(sealed_stamps)
    if not (proofs and stamps):
        raise Denied(
            "executors can't open what signs the copies of replication rules",
            hint=f"Give them {EXECUTORS_KEY}, as manage.py stores_key prints it",
        )
    return Signs(proofs, stamps)
