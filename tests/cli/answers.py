"""Answers of the API, as it gives them."""

from __future__ import annotations

from typing import Any

NOW = "2026-11-21T12:25:00.000Z"


def a_page(*results: Any, after: str = "") -> dict[str, Any]:
    """One page of a list; `after` leads to the next."""
    pagination = {"has_more": bool(after), "next_offset": after, "max_per_page": 1000, "results": len(results)}
    return {"pagination": pagination, "as_of": NOW, "results": list(results)}


def blockers(*things: Any, after: str = "") -> dict[str, Any]:
    """A page of what is missing or wrong."""
    return a_page(*things, after=after) | {"all_named": True}


def a_branch(name: str = "main", **more: Any) -> dict[str, Any]:
    """A branch that is up to date, but for what is given."""
    return {
        "name": name,
        "source_head": "94e84f28" * 8,
        "mirror_head": "94e84f28" * 8,
        "inferred": False,
        "pending_commits": 0,
        "lag_seconds": 0.0,
        "status": "Up to date",
        "reason_code": "up_to_date",
        "reason": f"{name} is up to date.",
        "oldest_pending_seen_at": None,
        "advanced_at": "2026-11-21T12:20:00.000Z",
        "retry_at": None,
        "blockers_total": 0,
        "blockers": [],
    } | more


BEHIND = {
    "mirror_head": "58ebd328" * 8,
    "pending_commits": 2,
    "lag_seconds": 120.696,
    "status": "Blocked",
    "oldest_pending_seen_at": "2026-11-21T12:22:59.304Z",
    "blockers_total": 1,
}


def a_mirror(name: str = "lake-eu", **more: Any) -> dict[str, Any]:
    """A mirror that is up to date, but for what is given."""
    return {
        "id": name,
        "name": name,
        "source_repository": "lake",
        "source_region": "us-east-1",
        "region": "eu-west-1",
        "storage_namespace": f"s3://dst/{name}",
        "object_replication": "native",
        "copying_paused": False,
        "workers": 16,
        "bytes_per_second": None,
        "objects_per_second": None,
        "branch_priority": [],
        "copied_objects": 0,
        "copied_bytes": 0,
        "paused": False,
        "validation_depth": "etag",
        "content_sample": 1.0,
        "imported": "block",
        "first_sync": "exact",
        "repair_tampering": "report",
        "tags": False,
        "selected_branches": {"include": ["*"], "exclude": [], "left_out": 0},
        "history": "full",
        "status": "Up to date",
        "reason_code": "up_to_date",
        "reason": "Main is up to date: eu-west-1 has every commit that was seen in us-east-1.",
        "branches": [a_branch()],
        "warnings": [],
        "source_looked_at": "2026-11-21T12:24:57.000Z",
        "destination_looked_at": "2026-11-21T12:24:55.000Z",
        "created_at": "2026-11-20T08:00:00.000Z",
        "as_of": NOW,
    } | more


BLOCKED = a_mirror(
    "blocked-eu",
    status="Blocked",
    reason="main is 2 commits and 2 min behind: object sales/part-1.csv of 59409fe3 has not reached eu-west-1.",
    branches=[a_branch(**BEHIND), a_branch("dev")],
)


def a_blocker(**more: Any) -> dict[str, Any]:
    """An object that has not arrived, but for what is given."""
    return {
        "id": 7,
        "kind": "object",
        "path": "sales/part-1.csv",
        "address": "data/x/y",
        "size": 20_100_000,
        "etag": "d41d8cd98f00b204e9800998ecf8427e",
        "reason": "missing",
        "detail": "",
        "gone_at_source": False,
        "damage": False,
        "holder_kind": "range",
        "holder": "ab" * 32,
        "first_seen": "2026-11-21T12:23:00.000Z",
        "attempts": 8,
        "look_at": "2026-11-21T12:25:41.000Z",
    } | more


def a_check(**more: Any) -> dict[str, Any]:
    """A check on demand that has just been asked for, but for what is given."""
    return {
        "id": 3,
        "what": "branch",
        "commit": "94e84f28" * 8,
        "branch": "main",
        "depth": "etag",
        "state": "queued",
        "ranges": 0,
        "ranges_done": 0,
        "metaranges_left": 1,
        "entries": 0,
        "problems": 0,
        "lacking": 0,
        "copied": 0,
        "copied_bytes": 0,
        "error": "",
        "asked_by": "olga",
        "asked_at": "2026-11-21T12:25:00.000Z",
        "started_at": None,
        "ended_at": None,
    } | more


CERTIFICATE = {
    "commit": "94e84f28" * 8,
    "metarange": "cd" * 32,
    "ranges": 31,
    "entries": 20114,
    "bytes": 123456789,
    "depth": "etag",
    "method": "ids recomputed from the bytes",
    "region": "eu-west-1",
    "storage_namespace": "s3://dst/lake-eu",
    "content_digest": "ab" * 32,
    "digest": "ef" * 32,
    "as_of": NOW,
}
