"""The tables of replication rules: `rule` (rules and links), `ledger` (what is open), `deletes` (what of a target is
the link's own, and deletions that wait), `passes`."""

from replication.models.deletes import Approval, Arrived, Overwritten, ShardManifest, Tombstone
from replication.models.ledger import OpenCount, OpenObject, RetryRequest, Shard, Touched
from replication.models.passes import Pass, PassRows, PassStretch
from replication.models.rule import Link, Rule, StoreLimit

__all__ = [
    "Approval",
    "Arrived",
    "Link",
    "OpenCount",
    "OpenObject",
    "Overwritten",
    "Pass",
    "PassRows",
    "PassStretch",
    "RetryRequest",
    "Rule",
    "Shard",
    "ShardManifest",
    "StoreLimit",
    "Tombstone",
    "Touched",
]
