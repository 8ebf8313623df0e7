"""What is told of a rule to who may run or change it, and not read it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from core.mirroring.states import State
from core.pauses import ENDED
from core.replicating.explain import ScanFacts, Told
from core.text.phrases import sentence
from replication.api.serializers import rule_json
from replication.models import Rule
from replication.status.rules import RuleReading


def hidden_json(rule: Rule, now: datetime) -> dict[str, Any]:
    """A rule for who may not read it: its name, and whether it is paused. Everything else is empty, and its state
    unknown."""
    told = Told(State.UNKNOWN, "Unknown", sentence("you may not see how it stands: that needs fs:ReadReplicationRule"))
    if pause := rule.pause:
        told = Told(State.PAUSED, "Paused", sentence(pause.told(now)))
    paused = {name: getattr(rule, name) for name in ENDED}
    bare = Rule(name=rule.name, created_at=rule.created_at, changed_at=rule.changed_at, **paused)
    return rule_json(RuleReading(bare, [], [], ScanFacts(), told, now))
