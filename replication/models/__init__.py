"""The tables of replication rules: `rule` (rules and links), `ledger` (what is open)."""

from replication.models.ledger import OpenCount, OpenObject, Shard, Touched
from replication.models.rule import Link, Rule

__all__ = ["Link", "OpenCount", "OpenObject", "Rule", "Shard", "Touched"]
