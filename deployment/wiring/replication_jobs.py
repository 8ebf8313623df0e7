"""What reads the places of replication rules and copies between them, by what is configured of their regions."""

from __future__ import annotations

import functools
import math
import time
from typing import TYPE_CHECKING

from core.exporting.deadline import Deadline, Rate
from core.mirroring.content_proof import UPLOAD_MARKS
from core.proof_of_parts import PURPOSE
from core.replicating import stamps
from deployment import config
from deployment.wiring import clients, region_settings

if TYPE_CHECKING:
    from adapters.places.describer import Describer
    from adapters.places.reader import PlaceReader
    from adapters.places.remover import PlaceRemover
    from adapters.places.state import StatePlace
    from adapters.places.version_writes import VersionMover
    from adapters.places.versions import VersionedPlace
    from adapters.s3.fast_store import FastObjectStore
    from adapters.s3.mover import Mover

TRIES = 2
"""So often a request is tried at once: the ledger tries again later, and a link should be known to be down soon."""
SPARE_CONNECTIONS = 8
LEAST_CONNECTIONS = 24


def place_of(region: str, uri: str, workers: int = 0) -> PlaceReader:
    """A place, for so many threads that ask at a time. Raises Invalid for a region that is not configured."""
    from adapters.places.reader import PlaceReader

    return PlaceReader(_store(region, workers), uri)


def versioned_place_of(region: str, uri: str, workers: int = 0) -> VersionedPlace:
    """The same, of whose keys all versions are read."""
    from adapters.places.versions import VersionedPlace

    return VersionedPlace(_store(region, workers), uri)


def quick_versioned_place_of(region: str, uri: str) -> VersionedPlace:
    """The same for somebody who waits."""
    from adapters.places.versions import VersionedPlace

    region_settings.installation(region)
    return VersionedPlace(clients.quick_bulk_objects(region), uri)


def quick_place_of(region: str, uri: str) -> PlaceReader:
    """The same for somebody who waits: it asks once, and gives up soon."""
    from adapters.places.reader import PlaceReader

    region_settings.installation(region)
    return PlaceReader(clients.quick_bulk_objects(region), uri)


def state_of(region: str, uri: str, tries: int = 3) -> StatePlace:
    """Where what is known of a rule lies, by one of its targets (its region and place): in the place that
    `replication.state` of the configuration names, else below that target. Raises Invalid for a region that is not
    configured."""
    from adapters.places.state import StatePlace

    told = config.current().replication.state
    store, root = (_store(told.region, 0), told.uri) if told.uri else (_store(region, 0), uri)
    return StatePlace(store, root, tries)


def describer_of(place: PlaceReader) -> Describer:
    """What asks and writes what a place's objects have beside their bytes."""
    from adapters.places.describer import Describer

    return Describer(place, TRIES)


def pin_place_of(region: str, uri: str) -> StatePlace:
    """Where a link's pin lies: below the target's own place, whatever the configuration says. Raises Invalid."""
    from adapters.places.state import StatePlace

    return StatePlace(_store(region, 0), uri)


def quick_pin_place_of(region: str, uri: str) -> StatePlace:
    """The same for somebody who waits."""
    from adapters.places.state import StatePlace

    region_settings.installation(region)
    return StatePlace(clients.quick_bulk_objects(region), uri, tries=1)


def remover_of(place: PlaceReader) -> PlaceRemover:
    """What deletes single objects of a place."""
    from adapters.places.remover import PlaceRemover

    return PlaceRemover(place)


def mover_between(
    source: tuple[str, str],
    target: tuple[str, str],
    *,
    workers: int,
    seconds: float,
    bytes_per_second: float,
    objects_per_second: float,
) -> Mover:
    """What copies from one place (region and URI) to another for so many seconds; limits of 0 are none."""
    from adapters.s3.mover import Mover

    deadline = Deadline(time.monotonic() + seconds, clock=time.monotonic)
    return Mover(
        _store(source[0], workers),
        _store(target[0], workers),
        deadline,
        within=is_one_store(source[0], target[0]),
        rate=Rate(bytes_per_second),
        objects=Rate(objects_per_second),
        proof_key=proof_key(),
        marks=f"{target[1].rstrip('/')}/{UPLOAD_MARKS}",
        tries=TRIES,
    )


def version_mover_between(
    source: tuple[str, str],
    target: tuple[str, str],
    *,
    workers: int,
    seconds: float,
    bytes_per_second: float,
    objects_per_second: float,
) -> VersionMover:
    """The same for versions, which always come through this process."""
    from adapters.places.version_writes import VersionMover

    return VersionMover(
        _store(source[0], workers),
        _store(target[0], workers),
        Deadline(time.monotonic() + seconds, clock=time.monotonic),
        rate=Rate(bytes_per_second),
        objects=Rate(objects_per_second),
        marks=f"{target[1].rstrip('/')}/{UPLOAD_MARKS}",
        tries=TRIES,
    )


def pin_mark() -> str:
    """What tells the pins of this deployment, and of those with the same key, from others'."""
    return config.current().derived_key("replication pin")[:16]


def proof_key() -> str:
    """What signs proofs of parts."""
    return config.current().derived_key(PURPOSE)


def stamp_key() -> str:
    """What signs where copies came from."""
    return config.current().derived_key(stamps.PURPOSE)


def is_one_store(region: str, other: str) -> bool:
    """Whether the store of one region may read there and write at the other's: then it copies by itself."""
    return region == other or _reached(region) == _reached(other)


def _reached(region: str) -> tuple[object, ...]:
    own = region_settings.usable(region)
    return own.store.endpoint.rstrip("/"), own.store.credentials, own.access


def _store(region: str, workers: int) -> FastObjectStore:
    """Connections in powers of two, so that a change of workers rarely makes another client."""
    region_settings.installation(region)
    wanted = max(LEAST_CONNECTIONS, workers) + SPARE_CONNECTIONS
    return _with_connections(clients.store_options(region), 2 ** math.ceil(math.log2(wanted)))


@functools.lru_cache(maxsize=clients.CLIENTS)
def _with_connections(options: clients.StoreOptions, connections: int) -> FastObjectStore:
    from adapters.s3.fast_store import FastObjectStore

    return FastObjectStore(**dict(options) | {"pool": connections, "tries": TRIES})
