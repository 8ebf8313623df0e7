"""What replication rules have done by Spark."""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from core.errors import LakeMirrorError
from core.proof_of_parts import PURPOSE
from core.replicating import stamps
from deployment import config
from deployment.wiring import executors, region_settings, replication_jobs

if TYPE_CHECKING:
    from spark_jobs.check.settings import StoreLocation
    from spark_jobs.replicate.building import HowCopied
    from spark_jobs.replicate.job import Task
    from spark_jobs.replicate.look import LinkTold, LookSettings, RuleTold, Stretch
    from spark_jobs.replicate.pass_look import PassTold
    from spark_jobs.replicate.pins import PinTold
    from spark_jobs.replicate.settings import CopySettings, Limits

log = logging.getLogger("lakemirror.replication")

Rows = Callable[[list[Mapping[str, Any]]], None]
REST_SECONDS = 60.0
"""After Spark has failed the worker does all itself for so long."""

_lock = threading.Lock()
_rests_until = 0.0


def answers() -> bool:
    """Whether Spark can be asked now, and has not failed just before."""
    if time.monotonic() < _rests_until:
        return False
    from spark_jobs import runner

    try:
        runner.spark().session()
    except LakeMirrorError as error:
        rest(error)
        return False
    return True


def rest(error: LakeMirrorError) -> None:
    """Spark has failed: it is left alone for a while."""
    global _rests_until
    log.warning("Spark does not copy for replication rules for %.0f s: %s", REST_SECONDS, error)
    with _lock:
        _rests_until = time.monotonic() + REST_SECONDS


def tasks_at_once(limits: Limits) -> int:
    """So many tasks share limits: no more than Spark runs at once, as far as that is known."""
    from spark_jobs import runner
    from spark_jobs.replicate.settings import TASKS

    return limits.most_tasks(min(TASKS, runner.spark().slots or TASKS))


def location_of(region: str, uri: str) -> StoreLocation:
    """A place in the store of a region, for executors. Raises Invalid or Unreadable."""
    own = region_settings.usable(region)
    return executors.location(uri, region, own.store, own.access)


def settings(
    *,
    source: tuple[str, str],
    target: tuple[str, str],
    how: HowCopied,
    pin: PinTold,
    until: float,
    limits: Limits,
    control: str,
    job: str,
) -> CopySettings:
    """What the tasks of a link are told; places as region and URI, `until` in Unix time."""
    from spark_jobs.replicate.settings import CopySettings

    state = config.current().replication.state
    return CopySettings(
        location_of(*source),
        location_of(*target),
        how,
        pin,
        until,
        limits,
        location_of(state.region, state.uri) if state.uri else location_of(*target),
        control,
        job,
        proofs=executors.sealed_text(PURPOSE, replication_jobs.proof_key()),
        stamps=executors.sealed_text(stamps.PURPOSE, replication_jobs.stamp_key()),
        others=_configured((way.source.region, way.source.uri) for way in how.ways),
    )


def _configured(places: Iterable[tuple[str, str]]) -> tuple[StoreLocation, ...]:
    """Places, for executors, but for those of regions that are not configured."""
    found = []
    for region, uri in dict.fromkeys(places):
        with suppress(LakeMirrorError):
            found.append(location_of(region, uri))
    return tuple(found)


def lookers_at_once() -> int:
    """So many tasks look through a place at a time: as many as Spark runs at once, as far as that is known."""
    from spark_jobs import runner
    from spark_jobs.replicate.settings import TASKS

    return runner.spark().slots or TASKS


def look_settings(rule: RuleTold, links: Sequence[LinkTold], until: float, *, dated: bool = False) -> LookSettings:
    """What the tasks of a look are told. A link of a region that is not configured has no place. Raises Invalid or
    Unreadable for the source."""
    from spark_jobs.replicate.look import LookSettings

    others = [(link.region, link.uri) for link in links]
    others += [(way.source.region, way.source.uri) for link in links for way in link.ways]
    return LookSettings(
        rule,
        tuple(links),
        (location_of(rule.region, rule.uri), *_configured(others)),
        until,
        proofs=executors.sealed_text(PURPOSE, replication_jobs.proof_key()),
        stamps=executors.sealed_text(stamps.PURPOSE, replication_jobs.stamp_key()),
        dated=dated,
    )


def look(tasks: Sequence[Sequence[Stretch]], settings: LookSettings, on_rows: Rows, tag: str) -> None:
    """Have tasks look through stretches; rows of SEEN_COLUMNS go to `on_rows`."""
    from spark_jobs import runner
    from spark_jobs.replicate.look import look

    runner.spark().run_copies(functools.partial(look, settings=settings), tasks, on_rows, f"look-{tag}")


def pass_look(
    tasks: Sequence[Sequence[Stretch]], settings: LookSettings, made: PassTold, on_rows: Rows, tag: str
) -> None:
    """Have tasks look through stretches of a pass; rows of PASSED_COLUMNS go to `on_rows`."""
    from spark_jobs import runner
    from spark_jobs.replicate.pass_look import pass_look

    job = functools.partial(pass_look, settings=settings, made=made)
    runner.spark().run_copies(job, tasks, on_rows, f"pass-{tag}")


def copy(tasks: Sequence[Task], settings: CopySettings, on_rows: Rows, tag: str) -> None:
    """Have tasks copy; rows of TRIED_COLUMNS go to `on_rows`."""
    from spark_jobs import runner
    from spark_jobs.replicate.job import copy

    runner.spark().run_copies(functools.partial(copy, settings=settings), tasks, on_rows, tag)
