"""A round of a link: so many of its open objects as there is time for are brought to the target, by several threads.

The threads know no database. The main one hands rows out, takes what became of them, writes that down every second and
asks as often whether somebody has paused the link or changed its limits.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from queue import Empty, SimpleQueue
from typing import Any

from django.db.models import F, Max, QuerySet

from core.replicating.health import Standing
from core.replicating.retries import LONGEST_WRITES, MARGIN_SECONDS, ROUND_SECONDS
from core.replicating.states import Health, OpenKind, Order
from db import clock
from db.chunks import chunks
from jobs.lease import Lease
from replication.engine import settling
from replication.engine.deletes.bars import Bars
from replication.engine.deletes.deleting import Deleting
from replication.engine.settling import Ended
from replication.engine.sharing import limits_of
from replication.models import Link, OpenObject
from replication.transitions import ledger
from spark_jobs.check.lanes import Lanes
from spark_jobs.check.progress import LARGE, lane_of
from spark_jobs.replicate.building import Copies
from spark_jobs.replicate.chains import SHOWN
from spark_jobs.replicate.copying import Wanted
from spark_jobs.replicate.pins import Pin

SETTLE_SECONDS = 1.0
TOLD_SECONDS = 2.0
"""So often limits and pauses are read."""
OLDEST_SHARE = 4
"""Where what was noted last comes first, one in so many is what waits longest all the same."""
CLAIMED = 500
"""So many rows are handed out at a time; more follow once half of them have ended."""


@dataclass(slots=True)
class Sent:
    """What a round has brought."""

    objects: int = 0
    bytes: int = 0
    tried: int = 0
    waits: bool = False
    """There was more than it had time for."""

    def add(self, more: Sent) -> None:
        """What another round has brought, too."""
        self.objects, self.bytes, self.tried = (
            self.objects + more.objects,
            self.bytes + more.bytes,
            self.tried + more.tried,
        )


@dataclass
class Round:
    """Brings what is due of a link, and deletes, if there is what does that. `most`: so many rows at most, for a probe
    say; `newest`: those noted last."""

    link: Link
    lease: Lease
    mover: Any
    copying: Copies | None
    standing: Standing
    deleting: Deleting | None = None
    pin: Pin | None = None
    bars: Bars | None = None
    most: int | None = None
    newest: bool = False
    deletes_only: bool = False
    seconds: float = ROUND_SECONDS
    stopped: bool = False
    sent: Sent = field(default_factory=Sent)
    _in_hand: dict[int, OpenObject] = field(default_factory=dict)
    _ended: SimpleQueue[Future[Ended]] = field(default_factory=SimpleQueue)
    _began: float = field(default_factory=time.monotonic)
    _told_at: float = 0.0
    _claimed: int = 0
    _writes_until: datetime | None = None
    _ends_at: float = 0.0
    _asks_up_to: int = 0
    _dry: bool = False

    def run(self) -> Standing:
        """Go on until nothing is due, or the time is up; gives how the link stands then. Raises Fenced."""
        self._told_at = self._began
        lanes = Lanes(self.link.workers)
        try:
            with self._writing():
                self._hand_out(lanes)
                while self._in_hand:
                    self._settle(self._gathered())
                    self._look()
                    self._hand_out(lanes)
        finally:
            self.stop()
            lanes.close()
            self.mover.close()
        return self.standing

    def stop(self) -> None:
        """Nothing more begins; what is under way ends where its next request would begin."""
        self.stopped = True
        self.mover.stop()

    @property
    def over(self) -> bool:
        """Whether nothing more may begin."""
        return self.stopped or time.monotonic() - self._began >= self.seconds

    def _hand_out(self, lanes: Lanes) -> None:
        if self._dry or self.over or len(self._in_hand) > CLAIMED // 2:
            return
        for row in self._claim(CLAIMED - len(self._in_hand)):
            self._in_hand[row.pk] = row
            self._start(lanes, row)

    def _claim(self, room: int) -> list[OpenObject]:
        """So many rows that are due, or fewer, and none that is in hand."""
        if self.most is not None:
            room = min(room, self.most - self._claimed)
        due = OpenObject.objects.filter(link=self.link.pk).due(clock.now())
        due = due if self.deleting is not None else due.copies()
        due = due.deletes() if self.deletes_only else due
        rows = self._in_turn(due, room) if room > 0 else []
        self._dry = len(rows) < room or room <= 0
        self._claimed += len(rows)
        self._note_begun(rows)
        if self.bars is not None and rows:
            self.bars.load(rows)
        return rows

    def _in_turn(self, due: QuerySet[OpenObject], room: int) -> list[OpenObject]:
        """So many of these that are not in hand: as the rule orders them, but of those that were noted last one in four
        is one that waits longest."""
        most = room + len(self._in_hand)
        if self.newest or self.link.rule.order == Order.NEW_FIRST:
            newest = list(due.order_by("-pk")[:most])
            oldest = [] if self.newest or len(newest) < most else list(due[:most])
            share = room // OLDEST_SHARE if oldest else 0
            first = [row for row in oldest if row.pk not in self._in_hand][:share]
            taken = {row.pk for row in first} | self._in_hand.keys()
            return first + [row for row in newest if row.pk not in taken][: room - len(first)]
        return [row for row in due[:most] if row.pk not in self._in_hand][:room]

    def _wanted(self, row: OpenObject) -> Wanted:
        untried = row.absent and row.pk > self._asks_up_to and not row.attempts and not row.code
        return Wanted(row.name, row.size, row.etag, untried, row.attempts, row.again, **_of_versions(row))

    def _start(self, lanes: Lanes, row: OpenObject) -> None:
        wanted = self._wanted(row)

        def work() -> Ended:
            if row.kind == OpenKind.COPY:
                assert self.copying is not None
                return Ended(row, self.copying.copy(wanted))
            assert self.deleting is not None
            return Ended(row, self.deleting.delete(wanted))

        lanes.submit(work, large=row.kind == OpenKind.COPY and lane_of(row.size) == LARGE).add_done_callback(
            self._ended.put
        )

    def _note_begun(self, rows: list[OpenObject]) -> None:
        """So whatever a worker that is lost has written is the link's all the same."""
        if not self.link.rule.markers:
            return
        begun = [row.pk for row in rows if row.kind == OpenKind.COPY and row.begun != row.etag]
        for some in chunks(begun):
            OpenObject.objects.filter(pk__in=some).update(begun=F("etag"))

    def _gathered(self) -> list[Ended]:
        """What ends within the next second; no more than half of what is handed out, so that threads never wait for
        the database."""
        gathered: list[Ended] = []
        until = time.monotonic() + SETTLE_SECONDS
        while len(gathered) < min(CLAIMED // 2, len(self._in_hand)) and (left := until - time.monotonic()) > 0:
            try:
                gathered.append(self._ended.get(timeout=left).result())
            except Empty:
                break
        return gathered

    def _settle(self, ended: list[Ended]) -> None:
        if not ended:
            return
        self.standing = settling.settle(self.link.pk, self.lease, ended, self.standing)
        for one in ended:
            del self._in_hand[one.row.pk]
            self.sent.tried += 1
            self.sent.objects += one.outcome.sent
            self.sent.bytes += one.outcome.size if one.outcome.sent else 0
        stale = self.pin is not None and self.pin.stale
        if (stale or self.standing.state is not Health.UP) and not self.stopped:
            self.stop()

    def _look(self) -> None:
        """What somebody changed holds for what is under way."""
        if time.monotonic() - self._told_at < TOLD_SECONDS:
            return
        self._told_at = time.monotonic()
        self.lease.renew()
        now = Link.objects.filter(pk=self.link.pk).select_related("rule").first()
        if now is None or now.removing or now.paused or now.rule.paused or now.rule.deleting:
            self.stop()
            return
        if self.deleting is not None and (now.frozen_since or not now.rule.judges):
            self.stop()
            return
        self._follow(now)
        if self.over:
            self._note_writes(clock.now() + timedelta(seconds=MARGIN_SECONDS))

    def _follow(self, now: Link) -> None:
        limits = limits_of(now)
        self.mover.pace(limits.bytes_per_second, limits.objects_per_second)

    # --- until when there may be writes -------------------------------------------------------------------------------

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Until when there may be writes stands in the database meanwhile: so no worker that is gone puts an old object
        over a newer one that somebody else has written since."""
        now = clock.now()
        with self.lease.transaction():
            self._doubt_what_was_lost()
            self._ends_at = (now + timedelta(seconds=self.seconds)).timestamp()
            if not self._note_writes(now + timedelta(seconds=self.seconds + MARGIN_SECONDS)):
                self.stop()  # the rule is gone, and its target may be somebody else's
        yield
        Link.objects.filter(pk=self.link.pk, writes_until=self._writes_until).update(writes_until=None)

    def _doubt_what_was_lost(self) -> None:
        """A round that did not end in order may have written any of the rows that there are without saying so: of these
        the target is asked. Inside of a transaction."""
        link = ledger.hold(self.link.pk)
        if link is None:
            return
        self._asks_up_to = link.asks_up_to
        if link.writes_until is not None:
            newest = OpenObject.objects.filter(link=link.pk).aggregate(pk=Max("pk"))["pk"]
            self._asks_up_to = max(newest or 0, link.asks_up_to)
            Link.objects.filter(pk=link.pk).update(asks_up_to=self._asks_up_to)

    def _note_writes(self, until: datetime) -> bool:
        self._writes_until = until
        return bool(Link.objects.filter(pk=self.link.pk).update(writes_until=until))


def _of_versions(row: OpenObject) -> dict[str, Any]:
    """What a row says where all versions are copied."""
    if row.kind == OpenKind.HIDE:
        return {"hides": row.doomed}
    if row.kind == OpenKind.PURGE:
        return {"purges": row.doomed, "of": row.of}
    return {"shows": row.described == SHOWN}


def seconds_of_writes(link: Link) -> float:
    """How long a worker that is gone may still write there. A time that is later than any worker's was noted by a clock
    that was ahead: as long as any counts from now on."""
    if link.writes_until is None:
        return 0.0
    now, longest = clock.now(), LONGEST_WRITES
    left = (link.writes_until - now).total_seconds()
    if left > longest:
        same = Link.objects.filter(pk=link.pk, writes_until=link.writes_until)
        same.update(writes_until=now + timedelta(seconds=longest))
    return min(max(0.0, left), longest)
