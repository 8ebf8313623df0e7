"""A piece of the look through a large place by Spark: stretches that are due are dealt out to tasks, which read and
judge them side by side; what they saw is written down here, page by page, as the worker does what it reads itself.

Rules that follow deletions, or copy delete markers with all versions, are looked through by the worker alone: what is
gone is judged by all that both sides list.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby
from typing import Any

from core.errors import Fenced, LakeMirrorError, Stopped
from core.replicating.retries import SLICE_SECONDS
from db import clock
from db.chunks import chunks
from deployment.wiring import replication_spark
from jobs import heavy
from jobs.lease import Lease
from replication.engine import upstream
from replication.engine.piece import Piece, is_stopped
from replication.models import Rule, Shard
from replication.transitions import shards
from spark_jobs.replicate.look import LinkTold, RuleTold, Stretch, counted
from spark_jobs.replicate.looking import Looker
from spark_jobs.replicate.reading import WINDOWS, Span, SpanRead
from spark_jobs.tasks import error_of

log = logging.getLogger("lakemirror.replication")

EACH = 4
"""So many stretches a task gets; what it does not come to stays due."""


def piece_of(rule: Rule, lease: Lease, looker: Looker, until: float) -> Piece:
    """What one round looks through: by Spark, where much is due, and Spark at hand."""
    if heavy.is_heavy_now(lease.duty, rule.region) and is_worth_spark(rule) and replication_spark.answers():
        return SparkPiece(rule, lease, looker, until)
    return Piece(rule, lease, looker, until)


def is_worth_spark(rule: Rule) -> bool:
    """Whether more stretches are due than a place has that is not large."""
    due = Shard.objects.filter(rule=rule.pk, due_at__lte=clock.now()).values_list("pk", flat=True)
    return not rule.judges and len(due[: shards.PARTS + 1]) > shards.PARTS


def choose_who_goes_on(rule: Rule, lease: Lease) -> None:
    """The next round is Spark's where much is due, else the worker's."""
    if not is_worth_spark(rule) or not heavy.make_heavy(lease.duty, rule.region):
        heavy.make_light(lease.duty, rule.region)


@dataclass
class SparkPiece(Piece):
    """Looks through what is due by tasks of Spark."""

    _due: dict[int, Shard] = field(default_factory=dict)
    _fresh_of: dict[int, frozenset[int]] = field(default_factory=dict)
    _cut: set[int] = field(default_factory=set)
    _error: LakeMirrorError | None = None

    def carry(self) -> None:
        """Look through what is due until the slice is over. Raises what the source answers; of what Spark fails of the
        next round of the worker's own makes up for."""
        many = replication_spark.lookers_at_once()
        due = list(Shard.objects.filter(rule=self.rule.pk).due(clock.now())[: many * EACH])
        stretches = [self._stretch(shard) for shard in due]
        tasks = [stretches[at::many] for at in range(min(many, len(stretches)))]
        until = (clock.now() + timedelta(seconds=SLICE_SECONDS)).timestamp()
        settings = replication_spark.look_settings(rule_told(self.rule), links_told(self.looker), until)
        try:
            replication_spark.look(tasks, settings, self._see, f"{self.rule.pk}")
        except Stopped:
            pass
        except Fenced:
            raise
        except LakeMirrorError as error:
            replication_spark.rest(error)
        self._following.leave(ended=False)
        if self._error is not None:
            raise self._error

    def _stretch(self, shard: Shard) -> Stretch:
        self._begin(shard)
        self._due[shard.pk], self._fresh_of[shard.pk] = shard, self._fresh(shard)
        high = None if shard.high is None else bytes(shard.high).decode()
        low = bytes(shard.after if shard.after is not None else shard.low).decode()
        return Stretch(shard.pk, low, high, list(shard.marks), sorted(self._fresh_of[shard.pk]))

    def _see(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """What tasks have told; nothing, now and then, while they are at work."""
        self.lease.renew()
        if is_stopped(self.rule):
            raise Stopped("the rule was paused, or deleted")
        for pk, some in groupby((row for row in rows if row["kind"] == "window"), key=lambda row: row["pk"]):
            for windows in chunks(list(some), WINDOWS):
                self._take_windows(pk, windows)
        errors = [error_of(row) for row in rows if row["kind"] == "error"]
        self._error = self._error or next(iter(errors), None)

    def _take_windows(self, pk: int, rows: Iterable[Mapping[str, Any]]) -> None:
        """The rest of a stretch that was cut is another one's, and looked through when that has its turn."""
        if pk in self._cut:
            return
        shard, fresh = self._due[pk], self._fresh_of[pk]
        span = Span(shard, "", None, True, fresh)
        if self._take(SpanRead(span, [counted(row) for row in rows])):
            self._cut.add(pk)


def rule_told(rule: Rule) -> RuleTold:
    """What tasks are told of a rule."""
    return RuleTold(
        rule.region,
        rule.uri,
        rule.created_at,
        existing=rule.existing,
        new=rule.new,
        both_ways=rule.both_ways,
        all_versions=rule.all_versions,
        terms=rule.terms,
        markers=rule.markers,
        purges=rule.purges,
    )


def links_told(looker: Looker) -> tuple[LinkTold, ...]:
    """What tasks are told of the links of a look."""
    ways = {one.pk: upstream.ways_to(looker.rule, one) for one in looker.links}
    return tuple(
        LinkTold(one.pk, one.region, one.uri, one.health, one.exact, one.number, ways[one.pk]) for one in looker.links
    )
