"""Books that may be older than the destination: a database that was restored from a backup, or was not at work.

Such books don't know what the source had since, nor what was moved there by it. So nothing that they can't explain is
put back, blamed on anybody or deleted before the source was looked at once more: then they know where it has gone.
"""

from __future__ import annotations

from datetime import timedelta

from core.mirroring.promotion import UNEXPLAINED, PromotionFacts, whose_move
from db import clock
from deployment import config
from jobs import duties
from mirrors.models import Mirror, MirrorDuty, SourceBranch

ROUNDS_MISSED = 1.5
"""After so many intervals without a look at the destination nobody was at work with these books."""


def may_be_older(mirror: Mirror) -> bool:
    """Whether nobody was at work for a while, and the source was not looked at since."""
    now, seen = clock.now(), mirror.destination_looked_at
    if seen is not None and now - seen > _longest_pause():
        mirror.resumed_at = now
        Mirror.objects.filter(pk=mirror.pk).update(resumed_at=now)
    looked_at = mirror.source.looked_at
    older = mirror.resumed_at is not None and (looked_at is None or looked_at <= mirror.resumed_at)
    if older:
        duties.wake(MirrorDuty.SENSE, mirror.source_id)
    return older


def _longest_pause() -> timedelta:
    return ROUNDS_MISSED * config.current().validator.run_interval


def waits_for_the_source(branch: SourceBranch, facts: PromotionFacts, *, older: bool) -> bool:
    """Whether another look at the source has to tell first what becomes of a branch: of one that both sides lack, as
    far as anybody has seen; by `older` books of all that the destination shows otherwise, or that was deleted."""
    if branch.missing_since is not None and not facts.gone and not facts.head:
        return True
    return older and (facts.gone or whose_move(facts) in UNEXPLAINED)
