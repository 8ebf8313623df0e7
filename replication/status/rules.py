"""How rules and their links stand, with a number of queries that doesn't grow with what there is: nobody counts rows of
open objects, as the counts are kept beside them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q, Subquery

from core.mirroring.rpo import in_words
from core.mirroring.states import State
from core.replicating.explain import LinkFacts, ScanFacts, Told, tell_link, tell_rule
from core.replicating.reasons import reason_words
from core.replicating.retries import LONGEST_WRITES
from core.replicating.states import ApprovalState, Code, Health, OpenStatus
from core.text.phrases import Phrase
from core.travelling.words import travel_words
from jobs.models import Duty
from replication.models import Approval, Link, OpenCount, Rule, StoreLimit, Touched
from replication.transitions.duties import LINK, SCAN

NEEDS_SOMEBODY = frozenset({State.BLOCKED, State.FROZEN, State.FAILED})
OVERDUE = timedelta(minutes=5)
"""A look that was due so long ago, and that nobody has begun, says that no worker is there for it."""
PACE_LASTS = timedelta(seconds=60)
"""What was measured of a link's pace longer ago says nothing about now."""


@dataclass(frozen=True, slots=True)
class ReasonCount:
    """So many open objects of a link have a status for one reason."""

    status: str
    code: str
    number: int
    bytes: int

    @property
    def words(self) -> str:
        """The reason in words."""
        return reason_words(self.code)


@dataclass(frozen=True, slots=True)
class LinkReading:
    """A link, and what is said of it."""

    link: Link
    facts: LinkFacts
    told: Told
    reasons: Sequence[ReasonCount]
    as_of: datetime

    @property
    def store_bytes(self) -> int | None:
        """What all links to its store may do together, in bytes a second; None: as fast as it goes."""
        limit: int | None = self.link.store_bytes  # type: ignore[attr-defined]
        return limit

    @property
    def pending(self) -> int:
        """Objects that are to be copied; of a link that is `overflowed` there are more."""
        return self.facts.pending

    @property
    def pending_bytes(self) -> int:
        """Their bytes."""
        return self.facts.pending_bytes

    @property
    def failed(self) -> int:
        """Objects that could not be copied."""
        return self.facts.failed

    @property
    def skipped(self) -> int:
        """Objects that can't be copied as they are."""
        return self.facts.skipped

    @property
    def deletes(self) -> int:
        """Deletions that are noted, or due."""
        return self.facts.deletes

    @property
    def asked(self) -> int:
        """Deletions that wait for somebody."""
        return self.facts.asked

    @property
    def oldest(self) -> datetime | None:
        """Since when the first of those that are to be copied waits."""
        return self.facts.oldest

    @property
    def overflowed(self) -> bool:
        """Whether more lacks than is counted."""
        return self.facts.more

    @property
    def refused(self) -> list[ReasonCount]:
        """Why objects failed or were skipped, the most first."""
        refused = [count for count in self.reasons if count.status in (OpenStatus.FAILED, OpenStatus.SKIPPED)]
        return sorted(refused, key=lambda count: (-count.number, count.code))

    @property
    def open(self) -> int:
        """All that are not there as they should be."""
        return self.pending + self.failed + self.skipped + self.facts.deletes

    @property
    def copies(self) -> bool:
        """Whether it has something to copy, and its store takes it, whatever else is said of it first."""
        return self.pending > 0 and self.link.health == Health.UP.value and not self.link.paused

    @property
    def pace(self) -> tuple[float, float] | None:
        """Objects and bytes a second, as it copies now; None while it doesn't."""
        sent_at = self.link.sent_at
        if sent_at is None or self.as_of - sent_at > PACE_LASTS or self.told.state is not State.SYNCING:
            return None
        return self.link.pace_objects, self.link.pace_bytes


MOVING = (State.NEW, State.SYNCING, State.RETRYING)
"""In which a page will soon say something else."""


@dataclass(frozen=True, slots=True)
class RuleReading:
    """A rule with its links, and what is said of it. `removing`: links that go, whose places are not free yet."""

    rule: Rule
    links: Sequence[LinkReading]
    removing: Sequence[Link]
    scan: ScanFacts
    told: Told
    as_of: datetime

    @property
    def pending(self) -> int:
        """Objects that are to be copied, of all links."""
        return sum(link.pending for link in self.links)

    @property
    def pending_bytes(self) -> int:
        """Their bytes."""
        return sum(link.pending_bytes for link in self.links)

    @property
    def failed(self) -> int:
        """Objects that could not be copied, of all links."""
        return sum(link.failed for link in self.links)

    @property
    def skipped(self) -> int:
        """Objects that can't be copied as they are, of all links."""
        return sum(link.skipped for link in self.links)

    @property
    def oldest(self) -> datetime | None:
        """Since when the first of those that are to be copied waits."""
        return min((link.facts.oldest for link in self.links if link.facts.oldest), default=None)

    @property
    def overflowed(self) -> bool:
        """Whether more lacks than is counted."""
        return any(link.facts.more for link in self.links)

    @property
    def travels(self) -> Phrase:
        """What goes with the bytes of its objects, in words."""
        rule = self.rule
        how = {"versions": rule.all_versions, "both_ways": rule.both_ways}
        return travel_words(rule.terms, rule.sweep_heads_per_second, **how)

    @property
    def moving(self) -> bool:
        """Whether its page will soon say something else."""
        told = (self.told, *(link.told for link in self.links))
        copies = not self.rule.paused and any(link.copies for link in self.links)
        return (
            copies
            or any(one.state in MOVING for one in told)
            or bool(self.removing)
            or self.rule.cycle_began_at is not None
        )

    @property
    def several(self) -> bool:
        """Whether one of its links can be removed."""
        return len(self.links) > 1

    @property
    def needs_somebody(self) -> bool:
        """Whether something does not go on before somebody acts."""
        return self.told.state in NEEDS_SOMEBODY or any(link.told.state in NEEDS_SOMEBODY for link in self.links)


def rule_reading(rule: Rule, now: datetime) -> RuleReading:
    """One rule as it stands."""
    return rule_readings([rule], now)[0]


def rule_readings(rules: Sequence[Rule], now: datetime) -> list[RuleReading]:
    """All of them in five queries, in their order."""
    links: dict[int, list[Link]] = defaultdict(list)
    of_store = StoreLimit.objects.filter(region=OuterRef("region")).values("bytes_per_second")
    rows_of_links = Link.objects.filter(rule__in=rules).annotate(store_bytes=Subquery(of_store))
    for link in rows_of_links.order_by("rule", "number"):
        links[link.rule_id].append(link)
    counts: dict[int, list[ReasonCount]] = defaultdict(list)
    rows = OpenCount.objects.filter(link__rule__in=rules, number__gt=0).order_by("link", "status", "code")
    for key, *count in rows.values_list("link", "status", "code", "number", "bytes"):
        counts[key].append(ReasonCount(*count))
    scanning, copying = _duties(rules, [link for some in links.values() for link in some])
    touched = Touched.objects.filter(rule=OuterRef("pk"))
    named = set(Rule.objects.filter(Exists(touched), pk__in=[rule.pk for rule in rules]).values_list("pk", flat=True))
    scans = {rule.pk: _scan(rule, scanning.get(rule.pk), rule.pk in named, now) for rule in rules}
    waiting = Approval.objects.filter(link__rule__in=rules, state=ApprovalState.WAITING.value)
    asked = dict(waiting.values_list("link", "number"))
    return [_reading(rule, links[rule.pk], counts, asked, scans[rule.pk], copying, now) for rule in rules]


def _duties(rules: Sequence[Rule], links: Sequence[Link]) -> tuple[dict[int, Duty], dict[int, Duty]]:
    """Those of these rules, and those of these links, by whose they are."""
    scans = Q(kind=SCAN, subject__in=[-rule.pk for rule in rules])
    found: tuple[dict[int, Duty], dict[int, Duty]] = {}, {}
    for duty in Duty.objects.filter(scans | Q(kind=LINK, subject__in=[-link.pk for link in links])):
        found[duty.kind == LINK][-duty.subject] = duty
    return found


def worst_first(readings: Sequence[RuleReading]) -> list[RuleReading]:
    """The rules that need somebody before the others."""
    return sorted(readings, key=lambda reading: (reading.told.rank, reading.rule.name))


def _reading(
    rule: Rule,
    links: Sequence[Link],
    counts: Mapping[int, Sequence[ReasonCount]],
    asked: Mapping[int, int],
    scan: ScanFacts,
    duties: Mapping[int, Duty],
    now: datetime,
) -> RuleReading:
    kept = [link for link in links if not link.removing]
    read = [
        _link_reading(link, counts.get(link.pk, ()), asked.get(link.pk, 0), scan, rule, duties.get(link.pk), now)
        for link in kept
    ]
    told = tell_rule([(reading.facts, reading.told) for reading in read], scan, rule.pause, now)
    return RuleReading(rule, read, [link for link in links if link.removing], scan, told, now)


def _scan(rule: Rule, duty: Duty | None, named: bool, now: datetime) -> ScanFacts:
    """What its source's store said counts before what became of the duty."""
    failing = duty.outcome if duty and duty.failures else ""
    if duty and now - duty.due_at > OVERDUE and (duty.until is None or duty.until < now):
        failing = f"no worker has taken that up for {in_words((now - duty.due_at).total_seconds())}"
    refused = bool(duty and duty.refusal)
    return ScanFacts(rule.full_ended_at, rule.error or failing, refused, named, _takes(rule))


def _takes(rule: Rule) -> float:
    """How long the last whole look took, if longer than from one to the next of a small place."""
    if rule.full_began_at is None or rule.full_ended_at is None:
        return 0.0
    seconds = (rule.full_ended_at - rule.full_began_at).total_seconds()
    return seconds if seconds > rule.scan_every else 0.0


def _held_until(link: Link, duty: Duty | None, now: datetime) -> datetime | None:
    """Until when nothing is begun on a link for the writes of a worker that is gone: nobody copies, and that should
    have been written down as ended."""
    worked_on = duty is not None and duty.until is not None and duty.until > now
    if worked_on or link.writes_until is None or link.writes_until <= now:
        return None
    return min(link.writes_until, now + timedelta(seconds=LONGEST_WRITES))


def _is_fresh(link: Link, rule: Rule) -> bool:
    """Whether no comparison of everything that began since the link is there has ended."""
    return link.added_at is not None and (rule.full_began_at is None or rule.full_began_at < link.added_at)


def _unsure(link: Link) -> str:
    """Why it is not known what is to be deleted at a link's target, "" if it is."""
    if link.unsure_deletes:
        return "what LakeMirror keeps in _lakemirror/ there could not be read or written when all was compared"
    return "it was more than is noted at once, and all is compared again" if link.unnoted_deletes else ""


def _sums(counts: Sequence[ReasonCount]) -> dict[str, tuple[int, int]]:
    """Objects and bytes by status; those that there are none of are 0."""
    sums: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for count in counts:
        number, size = sums[count.status]
        sums[count.status] = number + count.number, max(0, size + count.bytes)
    return sums


def _link_reading(
    link: Link,
    counts: Sequence[ReasonCount],
    asked: int,
    scan: ScanFacts,
    rule: Rule,
    duty: Duty | None,
    now: datetime,
) -> LinkReading:
    sums = _sums(counts)
    pending, pending_bytes = sums[OpenStatus.PENDING.value]
    facts = LinkFacts(
        number=link.number,
        uri=link.uri,
        region=link.region,
        source=rule.uri,
        source_region=rule.region,
        pause=link.pause,
        health=link.health,
        since=link.health_since,
        code=link.health_code,
        message=link.health_message,
        next_probe=link.probe_at,
        pending=pending,
        pending_bytes=pending_bytes,
        oldest=link.oldest_at,
        failed=sums[OpenStatus.FAILED.value][0],
        skipped=sums[OpenStatus.SKIPPED.value][0],
        unlisted=link.listing_error,
        more=link.overflowed,
        compared_at=link.compared_at,
        fresh=_is_fresh(link, rule),
        held_until=_held_until(link, duty, now),
        stale=link.stale_message if link.stale_since else "",
        frozen=link.frozen_message if link.frozen_since and rule.judges else "",
        frozen_for_target=link.frozen_code == Code.TARGET_REPOSITORY,
        asked=asked,
        unsure=_unsure(link) if rule.judges else "",
        deletes=sums[OpenStatus.WAITING.value][0] + sums[OpenStatus.DELETING.value][0],
    )
    return LinkReading(link, facts, tell_link(facts, scan, now, rule.pause), counts, now)
