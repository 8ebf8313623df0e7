"""The check of ranges of a mirror: by Spark, or in this process."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from core.bringing import SLICE_SECONDS, SMALL_SLICE_SECONDS
from core.errors import LakeMirrorError
from core.proof_of_parts import PURPOSE
from deployment import config
from deployment.wiring import clients, executors, region_settings

if TYPE_CHECKING:
    from spark_jobs.check.bring import Brings
    from spark_jobs.check.progress import Lanes
    from spark_jobs.check.settings import Bring, CheckSettings


def run_check(
    mirror: Any, work: Sequence[tuple[str, list[str]]], on_rows: Callable[[Iterable[Mapping[str, Any]]], None]
) -> None:
    """Run the Spark `check` job for ranges of a mirror; rows of CHECK_COLUMNS arrive in batches."""
    from spark_jobs import runner

    runner.spark().run_check(work, settings_of(mirror), on_rows)


def check_small(
    mirror: Any, work: Sequence[tuple[str, list[str]]], on_bringing: Callable[[Sequence[Mapping[str, Any]]], None]
) -> list[Mapping[str, Any]] | None:
    """The same rows from this process, at once; None where that needs Spark after all. How far the bringing is goes to
    `on_bringing` meanwhile."""
    from spark_jobs.check.job import check_small as check

    settings = settings_of(mirror, slice_seconds=SMALL_SLICE_SECONDS)
    if settings.bring is not None:
        executors.tell_keys()  # what brings finds its stores by the settings alone, as in an executor
    return check(work, settings, clients.bulk_objects(mirror.region), on_bringing)


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
        proof_key=executors.sealed_proof_key(config.current().derived_key(PURPOSE)),
    )


def mover_on_request(mirror: Any, seconds: float) -> Brings:
    """What copies objects of a mirror for so many seconds because somebody asked for it, by the mirror's limits."""
    from spark_jobs.check import job

    executors.tell_keys()
    return job.mover_of(replace(settings_of(mirror), bring=_bring(mirror, seconds)))


def change_limits(old: Any, new: Any) -> bool:
    """Tell the job that brings objects to a mirror of other limits; False: it has to be made anew for them."""
    from spark_jobs.check.live_limits import FILE, can_change, limits_file

    wanted = _bring(new, SLICE_SECONDS)
    if not can_change(_bring(old, SLICE_SECONDS), wanted):
        return False
    try:
        clients.objects(new.region).put(f"{new.namespace}/{FILE}", limits_file(wanted))
    except LakeMirrorError:
        return False
    return True


def end_bringing(mirror: Any) -> None:
    """Tell the job that brings objects to a mirror to begin no more, for Spark may take its time to end a task; one
    that can't be told ends with its slice."""
    from spark_jobs.check.live_limits import FILE, limits_file

    with suppress(LakeMirrorError):
        told = limits_file(_bring(mirror, SLICE_SECONDS), ends=True)
        clients.objects(mirror.region).put(f"{mirror.namespace}/{FILE}", told)


def machine_time() -> float:
    """Unix time by this machine's clock, which stamps the jobs that it makes: see `copying_progress`."""
    return time.time()


def copying_progress(mirror: Any, tasks: int, since: float) -> list[Lanes]:
    """What the first so many tasks of the job at work tell of themselves, of those that have told it since it was made
    (Unix time)."""
    from spark_jobs.check.progress import file_of, told_by
    from spark_jobs.check.settings import TASKS_WANTED

    store = clients.objects(mirror.region)
    found: list[Lanes] = []
    for task in range(min(tasks, TASKS_WANTED)):
        with suppress(LakeMirrorError):
            told = told_by(store.get(f"{mirror.namespace}/{file_of(task)}"), since)
            found += [told] if told is not None else []
    return found


def _bring(mirror: Any, slice_seconds: float) -> Bring:
    from spark_jobs.check.settings import Bring

    limits = float(mirror.copy_bytes_per_second or 0), float(mirror.copy_objects_per_second or 0)
    now = machine_time()
    waived = mirror.waived_objects.filter(full=False).values_list("address_hash", flat=True)
    return Bring(now + slice_seconds, mirror.copy_workers, *limits, made_at=now, accepted=frozenset(waived))
