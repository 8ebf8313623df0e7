"""Sweeps of a mirror's namespace: what nobody names there is looked for by Spark, or in this process, and removed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deployment.wiring import clients, executors, region_settings

if TYPE_CHECKING:
    from adapters.s3.remover import Remover
    from spark_jobs.check.settings import StoreLocation
    from spark_jobs.sweep.job import SweepSettings, SweptStore

Rows = Callable[[Iterable[Mapping[str, Any]]], None]


def look(mirror: Any, work: Sequence[tuple[str, str]], range_ids: Sequence[str], on_rows: Rows, *, here: bool) -> None:
    """What lies in stretches of a mirror's namespace, is named by none of some ranges, and is gone at the source: rows
    of SWEEP_COLUMNS. Where it raises nobody knows what is in the namespace."""
    from spark_jobs.sweep.job import sweep, sweep_here

    settings = settings_of(mirror)
    if not here:
        from spark_jobs import runner

        runner.spark().run_sweep(functools.partial(sweep, range_ids=range_ids, settings=settings), work, on_rows)
        return
    stores = store(mirror.region), store(mirror.source.region)
    for batch in sweep_here(work, range_ids, settings, *stores):
        on_rows(batch.to_pylist())


def named_by(mirror: Any, range_ids: Iterable[str]) -> set[str]:
    """The addresses that ranges name below a mirror's namespace, as either side has their files. Raises what keeps it
    from reading one."""
    from spark_jobs.sweep.job import named_by

    settings = settings_of(mirror)
    stores = store(mirror.region), store(mirror.source.region)
    return {one for range_id in range_ids for one in named_by(stores, settings, range_id).to_pylist()}


def settings_of(mirror: Any) -> SweepSettings:
    """The two namespaces of a mirror, as executors reach them."""
    from spark_jobs.sweep.job import SweepSettings

    return SweepSettings(
        here=_location(mirror.storage_namespace, mirror.region),
        source=_location(mirror.source.storage_namespace, mirror.source.region),
    )


def _location(namespace: str, region: str) -> StoreLocation:
    installation = region_settings.usable(region)
    return executors.location(namespace, region, installation.store, installation.access)


def store(region: str) -> SweptStore:
    """A region's store, to look at many objects in this process."""
    return clients.bulk_objects(region)


def remover(region: str) -> Remover:
    """What removes objects of a region's store."""
    from adapters.s3.remover import Remover

    return Remover(clients.fast_objects(region))
