"""A round of a link by Spark: its open objects are dealt out to tasks, which copy until the slice is over. What became
of them is written down here, as in any round, once Spark hands it over.

Until when there may be writes stands in the database before a task begins. A slice that does not end in order (Spark
was killed, or has given a task to another executor) leaves it there: so whoever goes on waits until nothing of it can
write any more, and asks the target about each object first.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from core.bringing import Unbrought
from core.errors import Fenced, LakeMirrorError, RemoteFailure
from core.replicating.health import Standing
from core.replicating.outcomes import Kind
from core.replicating.retries import MARGIN_SECONDS, SLICE_SECONDS
from db.chunks import chunks
from deployment.wiring import replication_jobs, replication_spark
from jobs.lease import Lease
from replication.engine.building import how_copied, pin_of, told_of
from replication.engine.deletes.manifests import folder_of
from replication.engine.round import CLAIMED, Round
from replication.engine.settling import Ended
from replication.engine.sharing import limits_of
from replication.models import Link, OpenObject
from spark_jobs.replicate.control import Controlling, control_name
from spark_jobs.replicate.job import dealt, outcome_of, row_of
from spark_jobs.replicate.pins import StaleTarget

LEAST, MOST = 5_000, 50_000
"""So many objects are handed out for a slice; twice as many as it copied at the pace of the last round."""


def spark_round(link: Link, lease: Lease, standing: Standing) -> SparkRound | None:
    """A round by Spark; None where the target has to be looked at by the worker first. Raises Invalid or Unreadable for
    a region that is not configured, or not so that we could ask."""
    pin = pin_of(link, replication_jobs.place_of(link.region, link.uri))
    try:
        pin.check()
    except (StaleTarget, Unbrought):
        return None
    limits, job = limits_of(link), uuid.uuid4().hex
    tasks, control = replication_spark.tasks_at_once(limits), control_name(folder_of(link))
    told = Controlling(replication_jobs.state_of(link.region, link.uri, tries=1), control, job, limits, tasks)
    made = SparkRound(link, lease, told, None, standing, None, pin, seconds=SLICE_SECONDS)
    made.most = int(min(MOST, max(LEAST, 2 * link.pace_objects * SLICE_SECONDS)))
    return made


@dataclass
class SparkRound(Round):
    """Brings what is due of a link by tasks of Spark. Deletes nothing."""

    _again: bool = False
    _begun: int = field(default=0)

    @property
    def idle(self) -> bool:
        """Whether its tasks have begun nothing: they came too late."""
        return not self._begun

    def run(self) -> Standing:
        """Go on until the slice is over; gives how the link stands then. Raises Fenced, and what Spark failed of."""
        self._told_at = self._began
        with self._writing():
            if not self.stopped and (rows := self._claim(self.most or MOST)):
                self._copy(rows)
            if self._again:
                raise RemoteFailure("Spark gave a task to another executor: what the first one writes is waited for")
        return self.standing

    def _copy(self, rows: list[OpenObject]) -> None:
        self._in_hand = {row.pk: row for row in rows}
        tasks = dealt([row_of(row.pk, self._wanted(row)) for row in rows], self.mover.tasks)
        self.mover.tasks = len(tasks)
        link = self.link
        settings = replication_spark.settings(
            source=(link.rule.region, link.rule.uri),
            target=(link.region, link.uri),
            how=how_copied(link),
            pin=told_of(link),
            until=self._ends_at,
            limits=self.mover.limits,
            control=self.mover.name,
            job=self.mover.job,
        )
        try:
            replication_spark.copy(tasks, settings, self._take, f"link-{link.pk}")
        except Fenced:
            raise
        except LakeMirrorError as error:
            replication_spark.rest(error)
            raise

    def _take(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """What tasks have told; nothing, now and then, while they are at work."""
        for row in rows:
            if row["kind"] == "task":
                self._note_task(row)
        tried = [row for row in rows if row["kind"] == "tried"]
        for some in chunks(tried, CLAIMED):
            self._settle([Ended(self._in_hand[row["pk"]], outcome_of(row)) for row in some])
        self._look()

    def _note_task(self, row: Mapping[str, Any]) -> None:
        self.mover.has_ended()
        self._again = self._again or row["again"]
        if row["stale"] and self.pin is not None:
            self.pin.stale, self.pin.of_another = row["stale"], row["other"]
            self.mover.silent = True

    def _settle(self, ended: list[Ended]) -> None:
        self._begun += sum(one.outcome.kind is not Kind.LATE for one in ended)
        super()._settle(ended)

    def _note_writes(self, until: datetime) -> bool:
        """Tasks that have not heard of a stop go on to the end of the slice."""
        ends = datetime.fromtimestamp(self._ends_at, UTC) + timedelta(seconds=MARGIN_SECONDS)
        return super()._note_writes(max(until, ends))

    def _follow(self, now: Link) -> None:
        """Other limits reach the tasks, but for what they can't share: then the next slice has others."""
        limits = limits_of(now)
        if limits.workers != self.link.workers or limits.most_tasks(self.mover.tasks) < self.mover.tasks:
            self.stop()
            return
        self.mover.pace(limits.bytes_per_second, limits.objects_per_second)
