"""Compares the listings of a source's namespace and a mirror's, planned or there: how much was never replicated, and a
manifest of it for S3 Batch Replication. Nothing is stored.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, TypeVar

from core.errors import Denied, LakeMirrorError, Throttled
from core.installations.preflight_existing import SAMPLED, Sample, sample_of
from core.installations.preflight_stores import bucket_of
from core.installations.unreplicated_objects import Lacking, Namespaces, lacking, manifest_line
from core.ports import ObjectStore
from core.replication.facts import StoreKind
from core.types import ObjectInfo, ObjectVersion
from db import clock
from deployment.wiring import clients, region_settings
from installations import probes
from jobs.concurrent_calls import ask_all
from mirrors.models import Mirror
from mirrors.services import mirrors, placement
from mirrors.services.rights import require_operation
from rbac import services as rbac

T = TypeVar("T")

COUNT_SECONDS = 20.0
"""So long somebody waits who asks for the number."""
SAMPLE_SECONDS = 2.0
SAMPLED_AT_ONCE = 8
MOST_AT_ONCE = 2
_being_made = threading.BoundedSemaphore(MOST_AT_ONCE)
"""A manifest takes a thread of the web process for as long as its listings take."""


@dataclass(frozen=True, slots=True)
class Route:
    """From a source's namespace in a region to a mirror's in another."""

    places: Namespaces
    source_region: str
    region: str


def route_of_mirror(*, actor: Any, mirror: Mirror) -> Route:
    """Of a mirror that is there. Raises Denied without the right to run it."""
    require_operation(actor, mirror)
    return Route(Namespaces(mirror.source.namespace, mirror.namespace), mirror.source.region, mirror.region)


def route_of_plan(*, actor: Any, repository: str, source_region: str, name: str, region: str, namespace: str) -> Route:
    """Of a mirror that could be made. Raises Denied unless the actor might make it, Invalid, NotFound (no such source)
    and what a lakeFS that can't be asked raises."""
    rbac.require(actor, *mirrors.rights_to_create(repository, name, namespace))
    placement.check_name(name)
    probes.check_namespace(namespace)
    region_settings.require_lakefs(region)
    source = mirrors.ask_source(repository, source_region)
    return Route(Namespaces(source.storage_namespace.rstrip("/"), namespace.rstrip("/")), source_region, region)


def count_unreplicated(route: Route, seconds: float = COUNT_SECONDS) -> Lacking:
    """How much the mirror's namespace lacks: what was counted in so many seconds."""
    found, _ = _counted(route, seconds)
    return found


def count_and_sample(route: Route, seconds: float) -> tuple[Lacking, Sample]:
    """The same, and what the source's store says of the first of these objects; nothing where it can't be asked."""
    found, keys = _counted(route, seconds)
    store, place = clients.replication(route.source_region), f"s3://{bucket_of(route.places.source)}/"
    if not keys:
        return found, Sample(StoreKind.OTHER)
    ends = time.monotonic() + SAMPLE_SECONDS
    kind = ask_all({"": partial(store.kind, route.places.source)}, limit=1, seconds=SAMPLE_SECONDS)[""]
    if isinstance(kind, LakeMirrorError) or kind is StoreKind.OTHER:
        return found, Sample(StoreKind.OTHER)
    heads = {key: partial(store.stands, place + key) for key in keys}
    answers = ask_all(heads, limit=SAMPLED_AT_ONCE, seconds=max(0.0, ends - time.monotonic()))
    return found, sample_of(kind, list(answers.values()), clock.now())


def _counted(route: Route, seconds: float) -> tuple[Lacking, list[str]]:
    """With the first keys of what is lacking."""
    ends, found, keys = time.monotonic() + seconds, Lacking(), list[str]()
    source, mirror = clients.quick_objects(route.source_region), clients.quick_objects(route.region)
    listings = source.list(_below(route.places.source)), mirror.list(_below(route.places.mirror))
    for one in lacking(route.places, *listings, found, lambda: time.monotonic() > ends):
        if len(keys) < SAMPLED:
            keys.append(one.key)
    return found, keys


class Manifest:
    """Lines of a manifest. One of few that are made in this process at a time, until it ends, breaks or is closed."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines, self._open = lines, True

    def __iter__(self) -> Manifest:
        return self

    def __next__(self) -> str:
        try:
            return next(self._lines)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let somebody else have one made."""
        if self._open:
            self._open = False
            _being_made.release()

    def __del__(self) -> None:
        """An answer that something else has taken the place of is closed by nobody."""
        self.close()


def manifest(route: Route, *, versions: bool) -> Manifest:
    """A manifest of all that is lacking, as both sides are listed. What keeps them from being listed at all is raised
    here; what breaks a listing off later is raised from the lines: no manifest ends unnoticed.

    Throttled while as many are made in this process as it has threads for.
    """
    if not _being_made.acquire(blocking=False):
        raise Throttled(f"{MOST_AT_ONCE} manifests are being made", hint="Try again when one is done")
    try:
        return Manifest(_lines(route.places, *_listings(route, versions=versions)))
    except BaseException:
        _being_made.release()
        raise


def _listings(route: Route, *, versions: bool) -> tuple[Iterator[ObjectVersion | ObjectInfo], Iterator[ObjectInfo]]:
    place, source = _below(route.places.source), clients.objects(route.source_region)
    listing = _begun(_with_versions(source, place)) if versions else _begun(source.list(place))
    return listing, _begun(clients.objects(route.region).list(_below(route.places.mirror)))


def _lines(
    places: Namespaces, source: Iterable[ObjectVersion | ObjectInfo], mirror: Iterable[ObjectInfo]
) -> Iterator[str]:
    for one in lacking(places, source, mirror, Lacking(), lambda: False):
        yield manifest_line(places.source, one)


def _with_versions(store: ObjectStore, place: str) -> Iterator[ObjectVersion]:
    try:
        yield from store.list_versions(place)
    except Denied as error:
        hint = (
            f"Allow s3:ListBucketVersions on {bucket_of(place)} to the store's key, or request it without version ids"
        )
        raise Denied(error.message, hint=hint) from error


def _begun(listing: Iterator[T]) -> Iterator[T]:
    """With its first page asked for."""
    return chain(list(islice(listing, 1)), listing)


def _below(namespace: str) -> str:
    return f"{namespace}/"
