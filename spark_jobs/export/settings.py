"""What the jobs of an export need to know, as plain values that may stand in a plan: no secrets but sealed ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

from adapters.s3.copier import Copier, Destination, Sizes
from adapters.s3.fast_store import FastObjectStore
from core.exporting.deadline import Deadline, Rate
from spark_jobs.check.settings import StoreLocation, is_one_store, store_at


@dataclass(frozen=True, slots=True)
class ExportSettings:
    """From a storage namespace to an export path, until `deadline` (Unix time).

    `compare`: look first, and leave alone what is there already. `ask`: no commit says how that is described, so it is
    asked for its content type and metadata. `failed`: directories in which something failed, for
    phase LAST. `patient`: what may pass by itself is left for the next slice, and no failure. Rates are for all tasks
    of a job together; 0 is unlimited. `most_failures`: a task that has more begins nothing else. `former`: patterns by
    which directories were marked, and are no more. `repair`: what is to be removed and is not there counts as skipped.
    """

    source: StoreLocation
    destination: StoreLocation
    patterns: tuple[str, ...] = ()
    former: tuple[str, ...] = ()
    deadline: float = 0.0
    compare: bool = False
    ask: bool = False
    failed: tuple[bytes, ...] = ()
    objects_per_second: float = 0.0
    bytes_per_second: float = 0.0
    tasks: int = 8
    threads: int = 32
    tries: int = 4
    sizes: Sizes = Sizes()
    metadata_prefix: str = "_lakefs"
    most_failures: int = 1000
    repair: bool = False
    patient: bool = False

    def range_uri(self, range_id: str) -> str:
        """Where a range of this id lies."""
        return f"{self.source.namespace.rstrip('/')}/{self.metadata_prefix}/{range_id}"

    def shared(self, units: int) -> ExportSettings:
        """For one of the tasks to which so many units are dealt: each has its share of the rates."""
        tasks = max(1, min(self.tasks, units))
        objects, size = self.objects_per_second / tasks, self.bytes_per_second / tasks
        return replace(self, objects_per_second=objects, bytes_per_second=size)


def source_store(settings: ExportSettings) -> FastObjectStore:
    """The repository's store, one client per process."""
    return store_at(replace(settings.source, namespace=""), settings.tries, _connections(settings))


def destination_store(settings: ExportSettings) -> FastObjectStore:
    """The export's store, one client per process; the same one if both are."""
    return store_at(replace(settings.destination, namespace=""), settings.tries, _connections(settings))


def _connections(settings: ExportSettings) -> int:
    """One for each thread that may ask: none waits for another, for what it waits with may be a write."""
    return settings.threads + settings.sizes.parts_at_once + 8


def copier_of(settings: ExportSettings) -> Copier:
    """What brings objects to the destination, with this process's credentials."""
    return Copier(
        source_store(settings),
        destination_store(settings),
        Destination(settings.destination.namespace),
        Deadline(settings.deadline),
        within=is_one_store(settings.source, settings.destination),
        sizes=settings.sizes,
        bytes_rate=Rate(settings.bytes_per_second),
    )
