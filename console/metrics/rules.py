"""Links of replication rules for Prometheus: how each stands, what waits, what was copied; in a few queries."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db.models import Count

from core.mirroring.rpo import lag
from core.replicating.states import Health, OpenStatus
from rbac import services as rbac
from replication.models import Rule, Shard
from replication.services.rights import LIST
from replication.status.rules import LinkReading, RuleReading, rule_readings
from web.prometheus import Gauge, labelled

LINK = ("rule", "link", "region")
FAILED = OpenStatus.FAILED.value


def gauges(user: Any, now: datetime) -> Iterator[Gauge]:
    """Of all rules, for who may list them; nothing where there is none."""
    rules = list(Rule.objects.live()) if rbac.allowed(user, *LIST) else []
    if not rules:
        return
    readings = rule_readings(rules, now)
    yield from _of_health(readings, now)
    yield from _of_open(readings, now)
    yield from _of_deletions(readings)
    yield _of_stretches(readings)
    yield from _of_copying(readings)
    yield _of_comparisons(readings, now)


def _links(readings: list[RuleReading]) -> Iterator[tuple[str, LinkReading]]:
    for reading in readings:
        for link in reading.links:
            yield _labels(reading, link), link


def _labels(reading: RuleReading, link: LinkReading, *more: tuple[str, str]) -> str:
    values = (reading.rule.name, str(link.link.number), link.link.region)
    return labelled((*LINK, *(name for name, _ in more)), (*values, *(value for _, value in more)))


def _of_health(readings: list[RuleReading], now: datetime) -> Iterator[Gauge]:
    up = Gauge("link_up", "1 while objects are copied to the target, 0 while the link is down or blocked")
    down = Gauge("link_down_seconds", "for how long the link has been down or blocked; 0 while it is up")
    paused = Gauge("link_paused", "1 while the link or its rule is paused")
    for reading in readings:
        for one in reading.links:
            labels, is_up = _labels(reading, one), one.link.health == Health.UP
            up.add(labels, is_up)
            down.add(labels, 0 if is_up or one.facts.since is None else lag(one.facts.since, now))
            paused.add(labels, one.link.paused or reading.rule.paused)
    yield from (up, down, paused)


def _of_open(readings: list[RuleReading], now: datetime) -> Iterator[Gauge]:
    pending = Gauge("link_pending_objects", "objects that are to be copied to the target, as far as they are counted")
    size = Gauge("link_pending_bytes", "bytes of these objects")
    oldest = Gauge("link_oldest_pending_seconds", "for how long the oldest of them has waited; 0 if there is none")
    failed = Gauge("link_failed_objects", "objects that could not be copied, by reason")
    skipped = Gauge("link_skipped_objects", "objects that can't be copied as they are, by reason")
    uncounted = Gauge("link_uncounted", "1 while more is to be copied than is counted")
    for reading in readings:
        for one in reading.links:
            labels = _labels(reading, one)
            pending.add(labels, one.pending)
            size.add(labels, one.pending_bytes)
            oldest.add(labels, lag(one.oldest, now) if one.oldest else 0)
            uncounted.add(labels, one.overflowed)
            for count in one.refused:
                gauge = failed if count.status == FAILED else skipped
                gauge.add(_labels(reading, one, ("code", count.code)), count.number)
    yield from (pending, size, oldest, failed, skipped, uncounted)


def _of_deletions(readings: list[RuleReading]) -> Iterator[Gauge]:
    waiting = Gauge("link_deletes_waiting", "objects that are to be deleted at the target, noted or due")
    asked = Gauge("link_deletes_to_approve", "those of them that wait for somebody to approve them")
    foreign = Gauge("link_foreign_objects", "objects at the target alone that the link did not copy")
    frozen = Gauge("link_frozen", "1 while nothing is deleted before somebody confirms the source")
    stale = Gauge("link_stale", "1 while nothing is written before somebody confirms the target")
    for labels, one in _links(readings):
        waiting.add(labels, one.deletes)
        asked.add(labels, one.asked)
        if one.link.foreign_objects is not None:
            foreign.add(labels, one.link.foreign_objects)
        frozen.add(labels, bool(one.facts.frozen))
        stale.add(labels, bool(one.facts.stale))
    yield from (waiting, asked, foreign, frozen, stale)


def _of_stretches(readings: list[RuleReading]) -> Gauge:
    """Each link has those of its rule: a stretch is looked through for all of them."""
    dirty = Gauge("link_dirty_shards", "stretches of names where something lacks that is not counted, looked at again")
    rules = Shard.objects.filter(rule__in=[reading.rule.pk for reading in readings], dirty=True)
    numbers = dict(rules.order_by("rule").values_list("rule").annotate(number=Count("pk")))
    for reading in readings:
        for one in reading.links:
            dirty.add(_labels(reading, one), numbers.get(reading.rule.pk, 0))
    return dirty


def _of_copying(readings: list[RuleReading]) -> Iterator[Gauge]:
    objects = Gauge("link_sent_objects_total", "objects copied to the target", kind="counter")
    size = Gauge("link_sent_bytes_total", "bytes copied to the target", kind="counter")
    retries = Gauge("link_retries_total", "attempts to copy an object that failed", kind="counter")
    lost = Gauge("link_overwritten_objects_total", "objects at the target that newer ones replaced", kind="counter")
    workers = Gauge("link_workers", "objects that may be copied at once")
    limit = Gauge("link_bytes_per_second", "the link's limit; no sample without one")
    for labels, one in _links(readings):
        link = one.link
        objects.add(labels, link.sent_objects)
        size.add(labels, link.sent_bytes)
        retries.add(labels, link.retries)
        lost.add(labels, link.overwritten_objects)
        workers.add(labels, link.workers)
        if link.bytes_per_second:
            limit.add(labels, link.bytes_per_second)
    yield from (objects, size, retries, lost, workers, limit)


def _of_comparisons(readings: list[RuleReading], now: datetime) -> Gauge:
    age = Gauge("rule_full_pass_age_seconds", "since all places of the rule had been compared last")
    for reading in readings:
        if reading.scan.whole_at:
            age.add(labelled(("rule",), (reading.rule.name,)), lag(reading.scan.whole_at, now))
    return age
