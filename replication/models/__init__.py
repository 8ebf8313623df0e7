"""The tables of replication rules: `rule` (rules and links), `ledger` (what is open), `passes`."""

from replication.models.ledger import OpenCount, OpenObject, Shard, Touched
from replication.models.passes import Pass, PassRows, PassStretch
from replication.models.rule import Link, Rule

__all__ = ["Link", "OpenCount", "OpenObject", "Pass", "PassRows", "PassStretch", "Rule", "Shard", "Touched"]
