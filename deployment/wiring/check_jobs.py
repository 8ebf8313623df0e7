"""The check of ranges of a mirror: by Spark, or in this process."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from core.bringing import SLICE_SECONDS, SMALL_SLICE_SECONDS
from deployment.wiring import clients, executors, region_settings

if TYPE_CHECKING:
    from spark_jobs.check.settings import Bring, CheckSettings


def run_check(
    mirror: Any, work: Sequence[tuple[str, list[str]]], on_rows: Callable[[Iterable[Mapping[str, Any]]], None]
) -> None:
    """Run the Spark `check` job for ranges of a mirror; rows of CHECK_COLUMNS arrive in batches."""
    from spark_jobs import runner

    runner.spark().run_check(work, settings_of(mirror), on_rows)


def check_small(mirror: Any, work: Sequence[tuple[str, list[str]]]) -> list[Mapping[str, Any]] | None:
    """The same rows from this process, at once; None where that needs Spark after all."""
    from spark_jobs.check.job import check_small as check

    settings = settings_of(mirror, slice_seconds=SMALL_SLICE_SECONDS)
    if settings.bring is not None:
        executors.tell_keys()  # what brings finds its stores by the settings alone, as in an executor
    return check(work, settings, clients.bulk_objects(mirror.region))


def settings_of(mirror: Any, *, slice_seconds: float = SLICE_SECONDS) -> CheckSettings:
    """What a check of a mirror needs to know; it brings what is missing for so many seconds, if the mirror does."""
    from spark_jobs.check.settings import CheckSettings

    destination, source = region_settings.usable(mirror.region), region_settings.usable(mirror.source.region)
    place = executors.location(mirror.storage_namespace, mirror.region, destination.store, destination.access)
    return CheckSettings(
        **{each.name: getattr(place, each.name) for each in fields(place)},
        depth=mirror.depth,
        imported=mirror.imported,
        source=executors.location(mirror.source.storage_namespace, mirror.source.region, source.store, source.access),
        sample=mirror.content_sample,
        # Each job reads others of the objects; within a job every try of a task reads the same.
        sample_seed=random.getrandbits(31),
        bring=_bring(mirror, slice_seconds) if mirror.brings else None,
    )


def _bring(mirror: Any, slice_seconds: float) -> Bring:
    from spark_jobs.check.settings import Bring

    return Bring(time.time() + slice_seconds, mirror.copy_workers, float(mirror.copy_bytes_per_second or 0))
