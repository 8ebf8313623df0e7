"""A preflight while somebody types: what no field has an answer to yet is no failure, and is left out."""

from __future__ import annotations

from dataclasses import replace

from core.installations.preflight import Check
from mirrors.preflight.checks import Preflight
from mirrors.preflight.questions import Plan

_OF_NAME = frozenset({"name", "destination-gc-rules"})
_OF_NAMESPACE = frozenset(
    {
        "namespace",
        "namespace-bucket",
        "namespace-content",
        "destination-versioning",
        "replication-rule",
        "existing-objects",
        "object-replication",
        "namespace-writable",
        "replication-delete-markers",
        "destination-lifecycle",
        "destination-expiration",
        "destination-proxy",
        "destination-store-clock",
    }
)


def of_what_is_typed(summary: Preflight, plan: Plan) -> Preflight:
    """Without the checks that need a field that is still empty; the verdict names these fields."""
    empty = [
        word
        for word, typed in (("the name of the mirror", plan.name), ("the storage namespace", plan.namespace))
        if not typed
    ]
    checks = [check for check in summary.checks if not _needs_empty(check, plan)]
    return replace(summary, checks=checks, missing=tuple(empty))


def _needs_empty(check: Check, plan: Plan) -> bool:
    if not plan.name and (check.id in _OF_NAME or check.id.startswith("destination-right:")):
        return True
    return not plan.namespace and check.id in _OF_NAMESPACE
