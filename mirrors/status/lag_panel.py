"""How well a mirror keeps its target, and what would be lost now: the figures above its branches."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from core.installations.outages import Service
from core.mirroring.facts import History
from core.mirroring.rpo import is_destination_stale, is_look_overdue
from core.mirroring.states import ASIDE
from core.mirroring.unreplicated import say_loss
from core.text.phrases import Phrase, count
from jobs.models import Duty
from mirrors.models import Mirror, MirrorDuty
from mirrors.queries.unreplicated import Loss, Losses, losses_of
from mirrors.status.mirror import MirrorStatus
from mirrors.status.outages import outages_by_mirror
from mirrors.transitions.held_merges import release_words
from mirrors.transitions.rpo_breaches import target_of, targets, targets_kept, unchecked_since

MOST_BRANCHES = 1000


def loss_doubts(mirror: Mirror, losses: Losses, now: datetime) -> list[str]:
    """What else may be lost with the source: it is not counted."""
    doubts = []
    if losses.waived:
        doubts.append(f"{count(losses.waived, 'waived commit is', 'waived commits are')} not known to be complete")
    if mirror.history == History.HEAD:
        doubts.append("the objects of older commits are not validated")
    stale = is_destination_stale(mirror.destination_looked_at, now, targets(mirror))
    stale |= any(outage.region == mirror.region for outage in outages_by_mirror([mirror], now).get(mirror.pk, ()))
    if mirror.state == Mirror.State.STOPPED or stale or unchecked_since([mirror], now):
        doubts.append(f"what {mirror.region} has now is not known")
    return doubts + release_words(mirror)


@dataclass(frozen=True, slots=True)
class LagPanel:
    """`worst_share` is the least share of the time in which a branch kept the target, by `worst_branch`; None: nobody
    measured it. Of several that kept it alike, the one that is measured longest speaks.

    `since`: from when on that is told; a month at most. In `unknown` of that time nobody knew.
    """

    target: timedelta
    worst_share: float | None
    worst_branch: str
    since: datetime | None
    unknown: timedelta
    loss: Loss
    loss_phrase: Phrase


def lag_panel(reading: MirrorStatus) -> LagPanel:
    """In a constant number of queries. With very many branches nobody adds up how well each kept the target."""
    mirror = reading.mirror
    names = [branch.name for branch in reading.branches if branch.state not in ASIDE]
    attainments = targets_kept(mirror, names, reading.as_of) if len(names) <= MOST_BRANCHES else {}
    worst_branch, worst = min(
        ((name, attainment) for name, attainment in attainments.items() if attainment.share is not None),
        key=lambda attainment: (attainment[1].share or 0, attainment[1].since, attainment[0]),
        default=("", None),
    )
    losses = losses_of(mirror, "", 0)
    loss = losses.together
    loss_phrase = say_loss(
        source_region=mirror.source.region,
        tally=loss.tally,
        at_least=loss.at_least,
        objects=loss.missing.objects,
        unchecked=loss.missing.unchecked,
        gone=loss.missing.gone,
        unproven=losses.unproven,
        seen=reading.looked_at is not None,
        doubts=loss_doubts(mirror, losses, reading.as_of),
        leaving=losses.leaving,
        summed=reading.pending,
        unread_for=_unread_for(reading),
    )
    return LagPanel(
        target=target_of(mirror),
        worst_share=worst.share if worst else None,
        worst_branch=worst_branch,
        since=worst.since if worst else None,
        unknown=worst.unknown if worst else timedelta(),
        loss=loss,
        loss_phrase=loss_phrase,
    )


def _unread_for(reading: MirrorStatus) -> float | None:
    """Seconds since the source's branches were read, where a look is overdue, fails, or can't get through."""
    source, now = reading.mirror.source, reading.as_of
    if source.looked_at is None:
        return None
    lakefs = (source.region, Service.LAKEFS)
    silent = any((outage.region, outage.service) == lakefs for outage in reading.outages)
    overdue = silent or is_look_overdue(source.looked_at, now, targets(reading.mirror))
    return (now - source.looked_at).total_seconds() if overdue or _look_fails(reading.mirror) else None


def _look_fails(mirror: Mirror) -> bool:
    return Duty.objects.filter(kind=MirrorDuty.SENSE, subject=mirror.source_id, failures__gt=0).exists()
