"""A round of a pass by Spark: stretches that are not read are dealt out to tasks; what these saw is written down here,
page by page, as the worker does what it reads itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from core.errors import Fenced, LakeMirrorError, Stopped
from core.replicating.retries import SLICE_SECONDS
from db import clock
from deployment.wiring import replication_spark
from jobs import heavy
from jobs.lease import Lease
from replication.engine.passes.reading import AHEAD, Reading
from replication.engine.spark_piece import EACH, links_told, rule_told
from replication.models import Link, Pass, PassStretch
from replication.transitions import shards
from spark_jobs.replicate.look import Stretch
from spark_jobs.replicate.looking import Looker
from spark_jobs.replicate.pass_look import PassTold, passed
from spark_jobs.tasks import error_of


def reading_of(made: Pass, lease: Lease, links: Sequence[Link], looker: Looker) -> Reading:
    """What reads on for a pass: by Spark, where much is left to be read, and Spark at hand."""
    if heavy.is_heavy_now(lease.duty, made.region) and is_worth_spark(made) and replication_spark.answers():
        return SparkReading(made, lease, links, looker, seconds=SLICE_SECONDS)
    return Reading(made, lease, links, looker)


def is_worth_spark(made: Pass) -> bool:
    """Whether more stretches are left to be read than a place has that is not large."""
    left = PassStretch.objects.filter(of=made.pk, done=False).values_list("pk", flat=True)
    return len(left[: shards.PARTS + 1]) > shards.PARTS


def choose_who_goes_on(made: Pass, lease: Lease) -> None:
    """The next round is Spark's where much is left, else the worker's."""
    if not is_worth_spark(made) or not heavy.make_heavy(lease.duty, made.region):
        heavy.make_light(lease.duty, made.region)


@dataclass
class SparkReading(Reading):
    """Reads on by tasks of Spark."""

    _left: dict[int, PassStretch] = field(default_factory=dict)
    _error: LakeMirrorError | None = None

    def carry(self) -> bool:
        """Read on until the slice is over; whether every stretch has been read. Raises what a store answers; what Spark
        fails of the next round of the worker's own makes up for."""
        many = replication_spark.lookers_at_once()
        left = PassStretch.objects.filter(of=self.made.pk, done=False).order_by("low")[: many * EACH]
        self._left = {one.pk: one for one in left}
        stretches = [_told(one) for one in self._left.values()]
        tasks = [stretches[at::many] for at in range(min(many, len(stretches)))]
        until = (clock.now() + timedelta(seconds=SLICE_SECONDS)).timestamp()
        rule = rule_told(self.looker.rule)
        settings = replication_spark.look_settings(rule, links_told(self.looker), until, dated=self.looker.dated)
        most = 0 if self.made.is_dry else max(1, AHEAD // max(1, len(tasks)))
        made = PassTold(self.made.prefix, str(self.made.what), self.made.older_than, most)
        try:
            replication_spark.pass_look(tasks, settings, made, self._see, f"{self.made.pk}")
        except Stopped:
            pass
        except Fenced:
            raise
        except LakeMirrorError as error:
            replication_spark.rest(error)
        if self._error is not None:
            raise self._error
        return not PassStretch.objects.filter(of=self.made.pk, done=False).exists()

    def _see(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """What tasks have told; nothing, now and then, while they are at work."""
        self.lease.renew()
        for row in rows:
            if row["kind"] == "error":
                self._error = self._error or error_of(row)
            elif row["kind"] == "window" and not self.full:
                found = passed(row)
                self._note(self._left[row["pk"]], found.judged, found)
        if self.full or not self._goes_on():
            raise Stopped("the pass has found enough for now, or was ended")


def _told(stretch: PassStretch) -> Stretch:
    high = None if stretch.high is None else bytes(stretch.high).decode()
    return Stretch(stretch.pk, bytes(stretch.after).decode(), high, (), ())
