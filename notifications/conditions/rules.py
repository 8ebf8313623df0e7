"""Replication rules and their links, as their pages read them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.db.models import Count

from core.installations.outages import Service
from core.mirroring.states import State
from core.notifications.kinds import OF_LINKS, AlertKind
from core.notifications.lifecycle import Condition, Standing
from core.pauses import Pause
from core.replicating.overdue import comparison_overdue
from core.text.phrases import sentence
from installations import contact
from jobs.duties import queue_name
from notifications.conditions.observation import UNSURE_LINK, Observation, of_rule, with_state
from notifications.conditions.regions import queue_subject, region_subject
from replication.models import Rule, Shard
from replication.status.rules import LinkReading, RuleReading
from replication.transitions.duties import SCAN
from replication.transitions.shards import PARTS

DOWN_FOR = timedelta(minutes=10)
"""A link that did not answer for less is none that somebody has to look after: it goes on by itself."""


def look_at_rules(seen: Observation, readings: Sequence[RuleReading], silent: set[str], now: datetime) -> None:
    """The comparing of each rule, each of its links, and pauses of both. `silent`: queues without a worker."""
    if not readings:
        return
    around = _Around(now, silent)
    for reading in readings:
        _look_at_comparing(seen, reading, around)
        for link in reading.links:
            _look_at_link(seen, reading, link, around)
            _look_at_pause(seen, reading.rule, link, now)
        _look_at_pause(seen, reading.rule, reading, now)


class _Around:
    """What explains that a rule does not go on, or takes its time."""

    def __init__(self, now: datetime, silent: set[str]) -> None:
        self.now = now
        self._silent = silent
        self._away = {one.region for one in contact.outages(now) if one.service == Service.STORE}
        numbers = Shard.objects.order_by().values("rule").annotate(n=Count("pk"))
        self.large = {row["rule"] for row in numbers if row["n"] > PARTS}

    def store_of(self, region: str) -> str:
        """The subject of the outage of a region's store, "" if that answers."""
        return region_subject(region, Service.STORE) if region in self._away else ""

    def queue_of(self, region: str) -> str:
        """The subject of the queue in which looks of this region's rules wait, "" if it has workers."""
        name = queue_name(SCAN, region) if self._silent else ""
        return queue_subject(name) if name in self._silent else ""


def rule_subject(rule: Rule) -> str:
    """A rule, as the subject of an alert: by its key, for another one may have its name later."""
    return f"rule/{rule.pk}"


def _look_at_comparing(seen: Observation, reading: RuleReading, around: _Around) -> None:
    """A source that can't be listed, and a comparison that does not come to its end: then nobody knows what lacks."""
    rule, subject, kind = reading.rule, rule_subject(reading.rule), AlertKind.RULE_NOT_COMPARED
    seen.standings[subject] = Standing(with_state(reading.told.word, str(reading.told.sentence)))
    overdue = comparison_overdue(
        around.now,
        created_at=rule.created_at,
        began_at=rule.full_began_at,
        ended_at=rule.full_ended_at,
        going_since=rule.cycle_began_at,
        every=timedelta(seconds=rule.scan_every) * (PARTS if rule.pk in around.large else 1),
    )
    if rule.paused or not (reading.scan.error or overdue):
        return
    told = f"the places can't be compared: {reading.scan.error}" if reading.scan.error else overdue
    cause = around.store_of(rule.region) or around.queue_of(rule.region)
    condition = Condition(kind=kind, subject=subject, sentence=str(sentence(told)), since=rule.error_since, cause=cause)
    seen.troubles.append(of_rule(rule, condition, rule.region))


def _look_at_link(seen: Observation, reading: RuleReading, link: LinkReading, around: _Around) -> None:
    rule, state = reading.rule, link.told.state
    subject = f"{rule_subject(rule)}/links/{link.link.number}"
    seen.standings[subject] = Standing(with_state(link.told.word, _naming(link)), sure=state not in UNSURE_LINK)
    kind = _kind_of(link)
    if kind is None or (kind is AlertKind.RULE_DOWN and not _is_down_for_long(link, around.now)):
        return
    cause = ""
    if kind in (AlertKind.RULE_DOWN, AlertKind.RULE_UNKNOWN):
        cause = around.store_of(link.link.region) or around.store_of(rule.region)
    if kind is AlertKind.RULE_UNKNOWN and reading.scan.error:
        cause = cause or rule_subject(rule)
    condition = Condition(kind=kind, subject=subject, sentence=_naming(link), since=_since(kind, link), cause=cause)
    seen.troubles.append(of_rule(rule, condition, link.link.region, _page(kind, link)))


def _kind_of(link: LinkReading) -> AlertKind | None:
    """What its state is an alert of; None: of none."""
    if link.told.state is State.BLOCKED and link.facts.stale:
        return AlertKind.RULE_STALE
    if link.told.state is State.FROZEN:
        return AlertKind.RULE_DELETES_FROZEN if link.facts.frozen else AlertKind.RULE_DELETES_WAITING
    return OF_LINKS.get(link.told.state)


def _is_down_for_long(link: LinkReading, now: datetime) -> bool:
    return link.facts.since is not None and now - link.facts.since >= DOWN_FOR


def _since(kind: AlertKind, link: LinkReading) -> datetime | None:
    return link.facts.since if kind in (AlertKind.RULE_DOWN, AlertKind.RULE_BLOCKED) else None


def _naming(link: LinkReading) -> str:
    """What is said of a link, with its target."""
    told = str(link.told.sentence)
    return told if link.link.uri in told else f"{link.link.uri}: {told}"


def _page(kind: AlertKind, link: LinkReading) -> str:
    """What follows the address of the rule's page."""
    if kind is AlertKind.RULE_FAILED:
        return f"open/?{urlencode({'link': link.link.number, 'status': 'failed'})}"
    if kind is AlertKind.RULE_DELETES_WAITING:
        return "deletes/"
    return f"#link-{link.link.number}"


def _look_at_pause(seen: Observation, rule: Rule, one: RuleReading | LinkReading, now: datetime) -> None:
    """A pause of a rule, or of a link of its own, that lasts for longer than was said."""
    if isinstance(one, LinkReading):
        subject, pause = f"{rule_subject(rule)}/links/{one.link.number}/pause", one.link.pause
        name, page = f"{rule.name} to {one.link.uri}", f"#link-{one.link.number}"
    else:
        subject, pause, name, page = f"{rule_subject(rule)}/pause", rule.pause, rule.name, ""
    seen.standings[subject] = Standing(with_state(one.told.word, str(one.told.sentence)))
    if pause is not None and pause.is_overdue(now):
        seen.troubles.append(of_rule(rule, _overdue(subject, name, pause, now), rule.region, page))


def _overdue(subject: str, name: str, pause: Pause, now: datetime) -> Condition:
    kind = AlertKind.RULE_PAUSED_TOO_LONG
    return Condition(kind=kind, subject=subject, sentence=str(pause.overdue(name, now)), since=pause.until)
