"""What became of objects that were tried, written into the ledger with how the link stands."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import F, Q

from core.replicating import retries
from core.replicating.both_ways.losers import loser_of
from core.replicating.deletes import MARKER, UNANSWERED_SECONDS, Own
from core.replicating.health import Standing, Tally, after
from core.replicating.outcomes import Kind, Outcome
from core.replicating.states import Health, OpenKind, OpenStatus
from db import clock
from jobs.lease import Lease
from replication.engine.deletes.ends import follows, target_of
from replication.models import Link, OpenObject, Rule
from replication.transitions import duties, ledger, losers, manifests, shards, tombstones
from replication.transitions.losers import Lost
from replication.transitions.pass_counts import how_of

DETAIL_LENGTH = 1000


class Ended(NamedTuple):
    """A row and what came of it."""

    row: OpenObject
    outcome: Outcome

    @property
    def deletes(self) -> bool:
        """Whether something was to be deleted."""
        return self.row.kind != OpenKind.COPY

    @property
    def came(self) -> bool:
        """Whether what is at the target is the link's: it was copied, found equal, or left by a round that was lost."""
        outcome = self.outcome
        lost = outcome.kind is Kind.GONE and outcome.there == self.row.begun
        return not self.deletes and bool(outcome.there) and (outcome.kind is Kind.DONE or outcome.sent or lost)


def standing_of(link: Link) -> Standing:
    """How a link stands, by its columns."""
    return Standing(
        Health(link.health),
        link.health_since,
        link.health_code,
        link.health_message,
        link.probe_at,
        link.probes,
        Tally.of_json(link.tally),
    )


def columns_of(standing: Standing) -> dict[str, Any]:
    """The columns that say so."""
    return {
        "health": standing.state.value,
        "health_since": standing.since,
        "health_code": str(standing.code),
        "health_message": standing.message[:DETAIL_LENGTH],
        "probe_at": standing.probe_at,
        "probes": standing.probes,
        "tally": standing.tally.as_json(),
    }


def settle(link_id: int, lease: Lease, ended: Sequence[Ended], standing: Standing) -> Standing:
    """Write down what was tried, of all of it or of nothing; gives how the link stands then. Raises Fenced."""
    now = clock.now()
    before = standing
    for one in ended:
        standing = after(standing, one.outcome, now)
    with lease.transaction():
        link = ledger.hold(link_id)
        if link is None:
            return standing
        ledger.settle(link, [_tried(one, standing, now) for one in ended if one.outcome.kind is not Kind.LATE])
        _count(link, ended, standing, now)
        _note_own(link, ended)
        _note_lost(link, ended, now)
        note_standing(link, before, standing, now)
    return standing


def note_standing(link: Link, before: Standing, standing: Standing, now: datetime) -> None:
    """Keep how it stands, with what follows for its rows. Inside of a transaction that holds the link."""
    if standing == before:
        return
    Link.objects.filter(pk=link.pk).update(**columns_of(standing))
    if standing.state is Health.BLOCKED and before.state is not Health.BLOCKED:
        refused = Q(status=OpenStatus.FAILED.value, code=str(standing.code))
        ledger.retry(link, refused, now, counted=refused)
    if standing.state is Health.UP and before.state is not Health.UP:
        ledger.due_now(link, now)
        if shards.look_at_dirty_ones(link.rule_id, now):
            if not shards.are_many(link.rule_id):
                Rule.objects.filter(pk=link.rule_id).update(scan_wanted=True)
            duties.wake_scan(link.rule_id)


def _count(link: Link, ended: Sequence[Ended], standing: Standing, now: datetime) -> None:
    sent = [one.outcome for one in ended if one.outcome.sent and not one.deletes]
    deleted = sum(one.outcome.sent and one.deletes for one in ended)
    failed = sum(one.outcome.kind in (Kind.RETRY, Kind.FAILED, Kind.REFUSED, Kind.SILENT) for one in ended)
    changes: dict[str, Any] = {"retries": F("retries") + failed} if failed else {}
    if deleted:
        changes["deleted_objects"] = F("deleted_objects") + deleted
    if sent:
        size = sum(outcome.size for outcome in sent)
        changes |= {
            "sent_objects": F("sent_objects") + len(sent),
            "sent_bytes": F("sent_bytes") + size,
            "sent_at": now,
        }
    if changes:
        Link.objects.filter(pk=link.pk).update(**changes)


def _note_own(link: Link, ended: Sequence[Ended]) -> None:
    """What a link that follows deletions has at its target by now, and what it has no more."""
    rule = Rule.objects.filter(pk=link.rule_id).first()
    if rule is None or not rule.knows_own:
        return
    if rule.all_versions:
        _note_own_versions(link, ended)
        return
    came = [(bytes(one.row.key), one.outcome.size, one.outcome.there, one.outcome.source) for one in ended if one.came]
    manifests.note_arrived(link.pk, came)
    if came and follows(rule):
        tombstones.is_there(target_of(link), [key for key, *_ in came])
        newest = {bytes(one.row.key): one.outcome.brought for one in ended if one.came}
        tombstones.has_had(target_of(link), {key: one for key, one in newest.items() if one is not None}, clock.now())
    gone = [bytes(one.row.key) for one in ended if one.deletes and one.outcome.kind is Kind.DONE]
    manifests.disown(link.pk, gone)


def _note_lost(link: Link, ended: Sequence[Ended], now: datetime) -> None:
    """What somebody had written at the target, and a newer object has replaced."""
    told = [(bytes(one.row.key), loser_of(one.outcome.replaced)) for one in ended]
    if lost := [Lost(key, loser) for key, loser in told if loser is not None]:
        losers.note(link, lost, now)


def _note_own_versions(link: Link, ended: Sequence[Ended]) -> None:
    came, gone = list[Own](), list[Own]()
    for one in ended:
        key = one.row.name
        for there, of in ((copy.there, copy.of) for copy in one.outcome.made):
            came.append(Own(key, there.size, MARKER if there.marker else there.etag, version=there.id, of=of))
        if one.row.kind == OpenKind.PURGE and one.outcome.kind is Kind.DONE:
            gone.append(Own(key, 0, "", version=one.row.doomed))
    manifests.note_arrived_versions(link.pk, came)
    manifests.note_versions(link.pk, gone)


def _tried(one: Ended, standing: Standing, now: datetime) -> ledger.Tried:
    row, outcome = one
    becomes = None if outcome.kind in (Kind.DONE, Kind.GONE) else _becomes(row, outcome, standing, now)
    if row.kind == OpenKind.DELETE and outcome.kind is Kind.GONE:
        becomes = _comparing(now)
    late = now + timedelta(seconds=UNANSWERED_SECONDS) if outcome.uncertain else None
    return ledger.Tried(row.pk, row.claimed, outcome.etag, becomes, outcome.described, how_of(outcome), late)


def _comparing(now: datetime) -> Mapping[str, Any]:
    """What was to be deleted is at the source again, as it was or another one, and an earlier try may have hit."""
    told = {"kind": OpenKind.COPY, "status": OpenStatus.PENDING.value, "code": "", "detail": "", "attempts": 0}
    return {**told, "etag": "", "since": now, "next_try": now, "approval_id": None}


def _becomes(row: OpenObject, outcome: Outcome, standing: Standing, now: datetime) -> Mapping[str, Any]:
    """What a row is after a try that did not do it. Where the link as a whole is at fault none counts. What a deletion
    that got no answer may yet hit is not tried again, nor written, before that is over."""
    told: dict[str, Any] = {"code": str(outcome.code), "detail": outcome.message[:DETAIL_LENGTH]}
    told["version"] = outcome.version
    if outcome.uncertain:
        told["not_before"] = now + timedelta(seconds=UNANSWERED_SECONDS)
    waits = OpenStatus.PENDING if row.kind == OpenKind.COPY else OpenStatus.DELETING
    if _is_links(outcome, standing):
        return {**told, "status": waits.value, "next_try": now}
    if outcome.kind is Kind.CHANGED:
        return {**told, "status": waits.value, "next_try": now + timedelta(seconds=1)}
    attempts = row.attempts + 1
    if outcome.kind in (Kind.RETRY, Kind.SILENT):
        pause, status = retries.pause_after(attempts, random.random(), outcome.pause), waits
    else:
        skipped = outcome.kind is Kind.SKIPPED
        pause, status = retries.DAILY, OpenStatus.SKIPPED if skipped else OpenStatus.FAILED
    return {**told, "status": status.value, "attempts": attempts, "next_try": now + timedelta(seconds=pause)}


def _is_links(outcome: Outcome, standing: Standing) -> bool:
    down = standing.state is Health.DOWN and outcome.kind is Kind.SILENT
    return down or (standing.state is Health.BLOCKED and outcome.kind is Kind.REFUSED)
