"""The duty of a link: whether its target can be reached, and a round of copying."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from django.db.models import Min, Q

from core.bringing import Side, Unbrought
from core.errors import LakeMirrorError
from core.replicating.health import Standing, after, answered
from core.replicating.outcomes import Kind, Outcome, of_error
from core.replicating.retries import PROBE_BLOCKED, ROUND_SECONDS
from core.replicating.states import Code, Health, OpenStatus, Versions
from core.text.phrases import count
from db import clock
from deployment import config
from deployment.wiring import replication_jobs, replication_spark
from jobs import heavy
from jobs.lease import DutyOutcome, Lease
from jobs.models import Duty
from replication.engine import removal, settling
from replication.engine.building import how_copied, identify, origins_of, pin_of, signs
from replication.engine.deletes import pinning
from replication.engine.deletes.bars import Bars, bars_of
from replication.engine.deletes.deleting import Deleting
from replication.engine.deletes.ends import follows
from replication.engine.deletes.version_deleting import VersionDeleting
from replication.engine.round import Round, Sent, seconds_of_writes
from replication.engine.sharing import limits_of
from replication.engine.spark_round import SparkRound, spark_round
from replication.models import Link, OpenObject, Rule
from replication.transitions import duties, ledger, retrying, shards
from spark_jobs.replicate.both_ways import Origins, have
from spark_jobs.replicate.building import Between

SILENT_SECONDS = 2.0
"""So soon a link is tried again whose target did not answer, for it may be down."""

DELETES_AGAIN = 60.0
"""So soon it is tried again whether what was let through may be deleted."""


def advance(lease: Lease) -> DutyOutcome:
    """One round for one link."""
    link = Link.objects.select_related("rule").filter(pk=-lease.duty.subject).first()
    if link is None:
        Duty.objects.filter(pk=lease.duty.pk).delete()
        return DutyOutcome("deleted")
    if link.rule.deleting:
        return DutyOutcome("being deleted")
    if link.removing:
        return removal.advance_link(link, lease)
    asked_for_more = retrying.carry_out(link.pk, lease)
    outcome = _advance(link, lease)
    return replace(outcome, next_in=0.0) if asked_for_more else outcome


def _advance(link: Link, lease: Lease) -> DutyOutcome:
    if link.paused or link.rule.paused:
        return DutyOutcome("paused")
    if (seconds_left := seconds_of_writes(link)) > 0:
        return DutyOutcome("waiting for the last writes of a lost worker", seconds_left)
    standing = settling.standing_of(link)
    now = clock.now()
    if not standing.may_try(now):
        assert standing.probe_at is not None
        return DutyOutcome(f"{standing.state}: {standing.message}", (standing.probe_at - now).total_seconds())
    with lease.keep_alive():
        identify(link)
        if (link.stale_since or link.pinned_at is None) and (why := pinning.pin(link, lease)):
            return DutyOutcome(why)
        return _work(link, lease, standing)


def _work(link: Link, lease: Lease, standing: Standing) -> DutyOutcome:
    if standing.state is Health.DOWN or not OpenObject.objects.filter(link=link.pk).due(clock.now()).exists():
        standing = _probe(link, lease, standing)
        if standing.state is Health.DOWN:
            return _resting(standing)
    try:
        done = _by_spark(link, standing, lease) or _round(link, standing, lease)
    except LakeMirrorError as error:  # no store was asked: a region is not configured
        at = clock.now() + timedelta(seconds=PROBE_BLOCKED)
        since = standing.since if standing.state is Health.BLOCKED else clock.now()
        blocked = Standing(Health.BLOCKED, since, Code.NOT_CONFIGURED, str(error), at)
        return _resting(_note(link, lease, standing, blocked))
    began = time.monotonic()
    standing = done.run()
    _keep_pace(link, done.sent, time.monotonic() - began)
    if done.pin is not None and (why := pinning.note_pin(link, lease, done.pin)):
        return DutyOutcome(why)
    done, standing = _after_spark(link, lease, standing, done)
    if standing.state is Health.BLOCKED and not done.sent.tried:  # nothing waits, so nothing is refused
        standing = _note(link, lease, standing, after(standing, Outcome(Kind.DONE), clock.now()))
    _look_at_what_overflowed(link)
    _choose_who_goes_on(link, lease, standing)
    return _told(link, standing, done)


# --- by Spark ---------------------------------------------------------------------------------------------------------


def _by_spark(link: Link, standing: Standing, lease: Lease) -> SparkRound | None:
    """A round by Spark, where there is enough to copy, and Spark at hand. Raises as `_round`."""
    if not heavy.is_heavy_now(lease.duty, link.rule.region) or not _is_worth_spark(link, standing):
        return None
    return spark_round(link, lease, standing) if replication_spark.answers() else None


def _is_worth_spark(link: Link, standing: Standing) -> bool:
    """Whether it has more to copy than the worker does by itself. What must not be brought back is known here alone."""
    if follows(link.rule):
        return False
    if standing.state is not Health.UP:
        return False
    (number, size), told = link.counts.pending(), config.current().replication
    return number > told.small_objects or size > told.small_bytes


def _after_spark(link: Link, lease: Lease, standing: Standing, done: Round) -> tuple[Round, Standing]:
    """What follows a round by Spark: it deletes nothing, so that is the worker's; and where Spark has begun nothing in
    time, the worker copies, too."""
    if not isinstance(done, SparkRound) or standing.state is not Health.UP:
        return done, standing
    following = _round(link, standing, lease)
    following.deletes_only = not done.idle
    if following.deletes_only and following.deleting is None:
        following.mover.close()
        return done, standing
    standing = following.run()
    if following.pin is not None:
        pinning.note_pin(link, lease, following.pin)
    following.sent.add(done.sent)
    return following, standing


def _choose_who_goes_on(link: Link, lease: Lease, standing: Standing) -> None:
    """The next round is Spark's where there is much left to copy, else the worker's."""
    if not _is_worth_spark(link, standing) or not heavy.make_heavy(lease.duty, link.rule.region):
        heavy.make_light(lease.duty, link.rule.region)


def _round(link: Link, standing: Standing, lease: Lease) -> Round:
    """Of one object, where the link is blocked. Raises Invalid or Unreadable for a region that is not configured, or
    not so that we could ask."""
    rule = link.rule
    place_of = replication_jobs.versioned_place_of if rule.all_versions else replication_jobs.place_of
    source = place_of(rule.region, rule.uri, link.workers)
    target = place_of(link.region, link.uri, link.workers)
    between = replication_jobs.version_mover_between if rule.all_versions else replication_jobs.mover_between
    limits = limits_of(link)
    mover: Any = between(
        (rule.region, rule.uri),
        (link.region, link.uri),
        workers=link.workers,
        seconds=ROUND_SECONDS,
        bytes_per_second=limits.bytes_per_second,
        objects_per_second=limits.objects_per_second,
    )
    pin, bars = pin_of(link, target), bars_of(link)
    describes = replication_jobs.describer_of
    places = Between(source, target, mover, pin, signs(), lambda: made.over, clock.now, describes, bars)
    places.place = partial(place_of, workers=link.workers)
    how = how_copied(link)
    versions = places.versions(how) if rule.all_versions else None
    copying = places.copying(how, versions)
    deleting: Any = None
    if pinning.may_delete(link, lease, source):
        allows = None if bars is None else partial(_is_what_was_deleted, bars, origins_of(link), target)
        remover = replication_jobs.remover_of(target)
        if versions is not None:
            deleting = VersionDeleting(versions, remover, pin)
        else:
            deleting = Deleting(source, remover, lambda: made.over, pin.check, allows)
    made = Round(link, lease, mover, copying, standing, deleting, pin, bars)
    if standing.state is Health.BLOCKED:
        # By turns: what is refused may be the oldest objects alone.
        made.most, made.newest = 1, standing.probes % 2 == 1
    return made


def _is_what_was_deleted(bars: Bars, origins: Origins, target: Any, key: str) -> bool:
    """Whether the target has what was deleted at the source, where rules lead both ways; raises what it answers."""
    seen = target.head(key)
    return seen is not None and bars.may_delete(key, have(origins.at_target(target.uri(key), seen), seen))


# --- health -----------------------------------------------------------------------------------------------------------


def _probe(link: Link, lease: Lease, standing: Standing) -> Standing:
    """Do both ends answer?"""
    outcome: Outcome | None = None
    sides = ((Side.SOURCE, link.rule.region, link.rule.uri), (Side.DESTINATION, link.region, link.uri))
    for side, region, uri in sides:
        try:
            replication_jobs.quick_place_of(region, uri).answers()
        except LakeMirrorError as error:
            outcome = of_error(Unbrought(side, error))
            if outcome.kind is Kind.SILENT:
                break
    now = clock.now()
    changed = answered(standing, now) if outcome is None else after(standing, outcome, now)
    return _note(link, lease, standing, changed)


def _note(link: Link, lease: Lease, before: Standing, standing: Standing) -> Standing:
    with lease.transaction():
        if (held := ledger.hold(link.pk)) is not None:
            settling.note_standing(held, before, standing, clock.now())
    return standing


def _resting(standing: Standing) -> DutyOutcome:
    assert standing.probe_at is not None
    pause = max(0.0, (standing.probe_at - clock.now()).total_seconds())
    return DutyOutcome(f"{standing.state}: {standing.message}", pause, whole=False)


# --- what follows -----------------------------------------------------------------------------------------------------


def _keep_pace(link: Link, sent: Sent, seconds: float) -> None:
    if not sent.objects:
        return
    pace = {"pace_objects": sent.objects / max(seconds, 0.001), "pace_bytes": sent.bytes / max(seconds, 0.001)}
    Link.objects.filter(pk=link.pk).update(**pace)


def _look_at_what_overflowed(link: Link) -> None:
    """Once half of the rows are gone there is room for what was only marked as lacking. Until a look through all, or in
    a large place through all that is marked, could note all of it, the link lacks more than its rows tell."""
    deletions = Q(unnoted_deletes=True) & (Q(rule__markers=True) | Q(rule__versions=Versions.ALL.value))
    lacks = Link.objects.filter(Q(overflowed=True) | deletions, pk=link.pk)
    overflowed = lacks.values_list("overflowed", flat=True).first()
    if overflowed is None:
        return
    # Deletions may have half of the rows, so there is room for more of them once there are fewer.
    if ledger.open_number(link.pk) <= ledger.MOST_OPEN // (2 if overflowed else 4):
        if overflowed and shards.are_many(link.rule_id):
            waiting = shards.hasten_dirty(link.rule_id, clock.now())
        else:
            waits = Rule.objects.filter(pk=link.rule_id, cycle_began_at=None, scan_wanted=False)
            waiting = bool(waits.update(scan_wanted=True))
        if waiting:
            duties.wake_scan(link.rule_id)


def _told(link: Link, standing: Standing, done: Round) -> DutyOutcome:
    if standing.state is not Health.UP:
        return _resting(standing)
    if standing.tally.silences:
        return DutyOutcome("the target or the source did not answer", SILENT_SECONDS)
    sent = done.sent
    summary = f"{count(sent.objects, 'object')} copied" if sent.tried else "nothing to copy"
    return DutyOutcome(summary, _seconds_until_due(link, deletes=done.deleting is not None))


def _seconds_until_due(link: Link, *, deletes: bool) -> float | None:
    """Until there is something that may be done; None: nothing is open. What may not be deleted now, or written before
    a deletion has ended, keeps nobody busy."""
    now = clock.now()
    rows = OpenObject.objects.filter(link=link.pk).exclude(status=OpenStatus.WAITING.value)
    due = rows.due(now)
    if (due if deletes else due.copies()).exists():
        return 0.0
    due_at = [rows.filter(next_try__gt=now).aggregate(at=Min("next_try"))["at"]]
    due_at.append(rows.filter(next_try__lte=now, not_before__gt=now).aggregate(at=Min("not_before"))["at"])
    due_at.append(now + timedelta(seconds=DELETES_AGAIN) if due.exists() else None)
    left = [(at - now) / timedelta(seconds=1) for at in due_at if at is not None]
    return min(left, default=None)
