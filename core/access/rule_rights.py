"""Replication rules as resources."""

from __future__ import annotations


def rule_arn(name: str) -> str:
    """A replication rule, by its name, as a resource of `fs:*` actions."""
    return f"arn:lakefs:fs:::replication/{name}"
