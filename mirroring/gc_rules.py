"""Reads the rules of garbage collection of a mirror's source and of its own repository, now and then."""

from __future__ import annotations

from datetime import timedelta

from core.errors import LakeMirrorError
from core.mirroring.explain.gc_rules import BothRules, RulesRead, both_of, rules_json
from core.types import GcRules
from db import clock
from deployment.wiring import clients
from mirrors.models import Mirror

LOOK_EACH = timedelta(minutes=10)


def look_at_rules(mirror: Mirror) -> None:
    """Note both sides' rules, if that was long ago. What did not answer now keeps what it said last."""
    if mirror.gc_rules_at is not None and clock.now() - mirror.gc_rules_at < LOOK_EACH:
        return
    last = both_of(mirror.gc_rules)
    source = _read(mirror.source.region, mirror.source.name, last and last.source)
    own = _read(mirror.region, mirror.name, last and last.mirror)
    kept = rules_json(BothRules(source, own))
    Mirror.objects.filter(pk=mirror.pk).update(gc_rules=kept, gc_rules_at=clock.now())


def _read(region: str, repository: str, last: RulesRead | None) -> RulesRead:
    """Asked once, for the duty has more to do than this."""
    answer: GcRules | LakeMirrorError | None
    try:
        answer = clients.quick_lakefs(region).gc_rules(repository)
    except LakeMirrorError as error:
        if error.retryable and last is not None and not last.error:
            return last
        answer = error
    return RulesRead.of(answer)
