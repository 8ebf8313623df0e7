"""What a check needs to know, as plain values that may stand in a plan: no secrets but sealed ones."""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass, fields, replace

from adapters.s3.fast_store import FastObjectStore
from adapters.s3.store_keys import StoreKeys, keys_of
from core.bringing import DEFAULT_WORKERS, LEAST_BYTES_PER_SECOND
from core.mirroring.object_check import Depth, Imported
from core.store_access import DIRECT, StoreAccess

TASKS_WANTED = 8
"""So many tasks share the ranges of a job, if those are few, and the limits of one that brings."""

BLOCK, ALLOW = Imported.BLOCK.value, Imported.ALLOW.value


@dataclass(frozen=True, slots=True)
class StoreLocation:
    """A namespace in a store. `region` picks the credentials in the executors' environment, where none come sealed,
    and, unless `store_region` differs, the S3 region."""

    namespace: str
    region: str = ""
    endpoint: str = ""
    store_region: str = ""
    force_path_style: bool = True
    access: StoreAccess = DIRECT


@dataclass(frozen=True, slots=True)
class Bring:
    """What is missing is brought from the source until `until` (Unix time): `workers` objects at once, at most so many
    bytes and objects a second (0: any number), all for the tasks of a job together, of which at most `tasks` run.

    `sure`: who finds the time up brings something all the same, else a slow start would let nothing be done. `made_at`:
    limits that were changed after that (Unix time) are heeded while the job runs; 0: none. `among`: how many tasks
    share the limits that are changed so. `task`: this one's number; -1: there is one alone, whose rows come at once.
    `accepted`: hashes of addresses below the namespace that history may lack.
    """

    until: float
    workers: int = DEFAULT_WORKERS
    bytes_per_second: float = 0.0
    objects_per_second: float = 0.0
    tasks: int = TASKS_WANTED
    sure: bool = True
    made_at: float = 0.0
    among: int = 1
    task: int = -1
    accepted: frozenset[str] = frozenset()

    @property
    def most_tasks(self) -> int:
        """So many tasks can share the limits, each with a worker of its own and enough to read a piece a second."""
        by_bytes = self.bytes_per_second // LEAST_BYTES_PER_SECOND if self.bytes_per_second else self.tasks
        by_objects = self.objects_per_second if self.objects_per_second else self.tasks
        return max(1, int(min(self.tasks, self.workers, by_bytes, by_objects)))

    def shared(self, tasks: int) -> Bring:
        """What one of so many tasks may do of it."""
        return replace(
            self,
            workers=max(1, self.workers // tasks),
            bytes_per_second=self.bytes_per_second / tasks,
            objects_per_second=self.objects_per_second / tasks,
            among=tasks,
        )


@dataclass(frozen=True, slots=True)
class CheckSettings(StoreLocation):
    """A destination and how deep to look.

    `source` decides where an entry doesn't; `sample`: the share of objects that depth `content` reads;
    `page_worth`: as many HEADs as a page of LIST may cost; `looked_up_at_once`: objects that share listings in a task;
    `bring`: what is missing is brought, by whom and until when; `proof_key`: what signs proofs of parts, sealed.
    """

    depth: str = Depth.ETAG.value
    imported: str = BLOCK
    source: StoreLocation | None = None
    sample: float = 1.0
    sample_seed: int = 0
    metadata_prefix: str = "_lakefs"
    page_worth: int = 20
    threads: int = 16
    tries: int = 4
    ranges_per_task: int = 0
    looked_up_at_once: int = 200_000
    bring: Bring | None = None
    proof_key: str = ""

    def uri_of(self, address: str) -> str:
        """Where a relative address lies."""
        return f"{self.namespace.rstrip('/')}/{address}"

    def metadata_uri(self, file_id: str) -> str:
        """Where a range of this id lies."""
        return self.uri_of(f"{self.metadata_prefix}/{file_id}")


def store_of(settings: CheckSettings) -> FastObjectStore:
    """The destination's store, one client per process. Credentials come from the environment."""
    return store_at(place_of(settings), settings.tries, settings.threads + 4)


def source_of(settings: CheckSettings) -> FastObjectStore | None:
    """The source's store in the same way; None where nothing is known of it."""
    return None if settings.source is None else store_at(settings.source, settings.tries, settings.threads + 4)


def is_one_store(source: StoreLocation, destination: StoreLocation) -> bool:
    """May the store copy by itself? AWS's own does that between its regions too."""
    return source.endpoint == destination.endpoint and _reached(source) == _reached(destination)


def _reached(place: StoreLocation) -> tuple[StoreKeys | None, StoreAccess]:
    """With which keys, in which way; the same keys are sealed differently each time."""
    return keys_of(place.region, place.access), replace(place.access, sealed="")


def place_of(settings: CheckSettings) -> StoreLocation:
    """The destination's store, whatever the namespace."""
    own = {each.name: getattr(settings, each.name) for each in fields(StoreLocation)}
    return StoreLocation(**own | {"namespace": ""})


@functools.lru_cache(maxsize=32)
def store_at(place: StoreLocation, tries: int, pool: int) -> FastObjectStore:
    """A client of the place's store, one per process; its namespace does not matter."""
    keys = keys_of(place.region, place.access)
    return FastObjectStore(
        endpoint=place.endpoint,
        region=place.store_region or place.region,
        force_path_style=place.force_path_style,
        access=place.access,
        tries=tries,
        pool=pool,
        **({} if keys is None else asdict(keys)),
    )
