"""The duty of a rule: keys that somebody named, then a piece of the look through the whole source.

A look through all stretches is a cycle (cycles.py). Stretches are read side by side with what the targets list, by
several threads (reading.py); what was seen and where the look goes on are written in one transaction (piece.py).
"""

from __future__ import annotations

import time

from core.errors import LakeMirrorError, NotFound
from core.replicating.states import Code
from core.text.phrases import count
from db import clock
from jobs.lease import DutyOutcome, Lease
from jobs.models import Duty
from replication.engine import cycles, removal, sweeping, touched
from replication.engine.deletes import pinning
from replication.engine.looking import looker_of
from replication.engine.piece import SLICE_SECONDS, Piece
from replication.engine.spark_piece import choose_who_goes_on, piece_of
from replication.models import Rule, Shard
from replication.transitions import freezing


def advance(lease: Lease) -> DutyOutcome:
    """One round for one rule."""
    rule = Rule.objects.filter(pk=-lease.duty.subject).first()
    if rule is None:
        Duty.objects.filter(pk=lease.duty.pk).delete()
        return DutyOutcome("deleted")
    if rule.deleting:
        return removal.advance(rule, lease)
    if rule.paused:
        return DutyOutcome("paused")
    with lease.keep_alive():
        return _look(rule, lease)


def _look(rule: Rule, lease: Lease) -> DutyOutcome:
    looker = None
    try:
        looker = looker_of(rule, list(rule.links.kept()))
        began = time.monotonic()
        touched.look(rule, looker, lease, lambda: time.monotonic() - began >= SLICE_SECONDS)
        if rule.judges and rule.cycle_began_at is None:
            pinning.note_created(rule.pk, lease, looker.source)
        cycles.begin(rule, lease, looker.links)
        piece = piece_of(rule, lease, looker, began + SLICE_SECONDS)
        piece.carry()
        sweeping.sweep(rule, looker, lease)
    except LakeMirrorError as error:
        _note_error(rule, str(error))
        if rule.judges and isinstance(error, NotFound):
            with lease.transaction():
                freezing.freeze(rule.pk, Code.SOURCE_BUCKET_NOT_FOUND, freezing.GONE, clock.now())
        raise
    finally:
        if looker is not None:
            looker.close()
    _note_error(rule, "")
    return _told(rule, piece)


def _note_error(rule: Rule, error: str) -> None:
    """Why the source can't be listed, and since when; "" once it can."""
    if error == rule.error:
        return
    since = None if not error else (rule.error_since or clock.now())
    Rule.objects.filter(pk=rule.pk).update(error=error, error_since=since)


def _told(rule: Rule, piece: Piece) -> DutyOutcome:
    rule.refresh_from_db()
    if cycles.end(rule, piece.lease):
        rule.refresh_from_db()
    choose_who_goes_on(rule, piece.lease)
    summary = f"{count(piece.seen, 'object')} seen, {piece.noted:,} to copy"
    due = [cycles.due_at(rule)] if rule.cycle_began_at is None else []
    due += Shard.objects.filter(rule=rule.pk).order_by("due_at").values_list("due_at", flat=True)[:1]
    if rule.touched.exists() or None in due or sweeping.is_due(rule):
        return DutyOutcome(summary, 0.0)
    first = min(at for at in due if at is not None)
    return DutyOutcome(summary, max(0.0, (first - clock.now()).total_seconds()))
