"""Replication rules as people read them."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType

from lakemirror.output.formatting import UNKNOWN, ago, count, labels_of, length, size, until
from lakemirror.output.rendering import line, listed, table

WORST_FIRST = ("blocked", "frozen", "failed", "unknown", "retrying", "paused", "syncing", "new", "up_to_date")
_TROUBLE = ("blocked", "frozen", "failed")
LINKS = ("Link", "State", "Target", "Pending", "Bytes", "Oldest", "Failed", "Copied")
SHOWN = 3


def rule_list(page: dict[str, Any]) -> RenderableType:
    """All rules, the worst first."""
    rules = sorted(page["results"], key=lambda rule: _rank(rule["state"]))
    if not rules:
        return line("No replication rules.")
    columns = ("Rule", "State", "Source", "Targets", "Pending", "Failed", "Oldest")
    return Group(line(f"{count(len(rules), 'rule')}."), "", table(columns, map(_row, rules)))


def _rank(state: str) -> int:
    return WORST_FIRST.index(state) if state in WORST_FIRST else -1


def _row(rule: dict[str, Any]) -> tuple[str, ...]:
    return (
        rule["name"],
        rule["word"],
        _place(rule["source"]),
        f"{len(rule['links'])}",
        f"{rule['pending_objects']:,}",
        f"{rule['failed_objects']:,}",
        ago(rule["oldest_at"], rule["as_of"]),
    )


def _place(place: dict[str, Any]) -> str:
    return f"{place['uri']} ({place['region']})"


def is_in_trouble(rule: dict[str, Any]) -> bool:
    """Whether a link is blocked, or objects could not be copied."""
    return rule["state"] in _TROUBLE or rule["failed_objects"] > 0


def rule(rule: dict[str, Any]) -> RenderableType:
    """A rule with its links."""
    scanned = f", all of it last {ago(rule['scanned_at'], rule['as_of'])}" if rule["scanned_at"] else ""
    lines = [
        f"{rule['name']}: {rule['word']}",
        rule["reason"],
        f"Source       {_place(rule['source'])}",
        f"Copies       {_kinds(rule)}",
        f"Compared     every {length(rule['scan_every'])}{scanned}",
        f"Travels      {_travels(rule)}",
        f"Deletions    {_deletions(rule)}",
    ]
    if rule["labels"]:
        lines.append(f"Labels       {labels_of(rule)}")
    links = [_link(link, rule["as_of"]) for link in rule["links"]]
    why = [text for link in rule["links"] for text in _why(link, rule["as_of"])]
    return Group(*map(line, lines), "", table(LINKS, links), *([""] if why else []), *map(line, why))


def _deletions(rule: dict[str, Any]) -> str:
    if rule["versions"] == "all":
        purges = " and purges" if rule.get("purges") else ""
        bounds = f"up to {rule['delete_percent']} % and {rule['delete_most']:,} at once"
        return f"delete markers{purges}, {bounds}"
    if not rule["markers"]:
        return "are not followed"
    return f"are followed, up to {rule['delete_percent']} % and {rule['delete_most']:,} within 24 hours"


def approvals(page: dict[str, Any]) -> RenderableType:
    """Deletions that wait for somebody."""
    if not page["results"]:
        return line("No deletions wait for approval.")
    return Group(*(part for one in page["results"] for part in (approval(one), "")))


def approval(one: dict[str, Any]) -> RenderableType:
    """One list of them."""
    lines = [
        f"{one['id']}: {one['objects']:,} of {one['of_objects']:,} objects at {one['uri']}: {one['state']}",
        *(f"  {key}" for key in one["first_keys"][:10]),
    ]
    return Group(*map(line, lines))


def _kinds(rule: dict[str, Any]) -> str:
    kinds = (("existing objects", rule["existing"]), ("new objects", rule["new"]))
    versions = ", all versions and delete markers" if rule["versions"] == "all" else ""
    newest = ", where the target has nothing newer" if rule["conflict"] == "newest" else ""
    return " and ".join(words for words, wanted in kinds if wanted) + versions + newest


def _travels(rule: dict[str, Any]) -> str:
    """What goes with the bytes of its objects."""
    words = ["content, headers, tags and locks" if rule["metadata"] == "all" else "content and headers"]
    if rule["storage_class"]:
        same = rule["storage_class"] == "same"
        words.append(f"in {'the same storage class' if same else rule['storage_class']}")
    if rule["tags"]:
        words.append("of objects tagged " + ", ".join(f"{key}={value}" for key, value in sorted(rule["tags"].items())))
    if rule["sweep_heads_per_second"]:
        words.append(f"with {rule['sweep_heads_per_second']:,} looks a second for changed metadata")
    return " ".join(words)


def _link(link: dict[str, Any], now: str) -> tuple[str, ...]:
    return (
        str(link["number"]),
        link["word"],
        _place(link),
        f"{link['pending_objects']:,}",
        size(link["pending_bytes"]),
        ago(link["oldest_at"], now),
        f"{link['failed_objects']:,}",
        f"{link['sent_objects']:,} ({size(link['sent_bytes'])})",
    )


def _why(link: dict[str, Any], now: str) -> list[str]:
    """What there is to say of a link beyond its row."""
    lines = [f"Link {link['number']}: {link['reason']}"]
    for failed in link["failed_by_code"][:SHOWN]:
        lines.append(f"  {failed['objects']:,} × {failed['code']}: {failed['words']}")
    if link["exact"] is not None:
        lines.append("  versions keep their ids and times" if link["exact"] else "  versions get ids of their own")
    if link.get("foreign_objects"):
        first = ", ".join(link["foreign_keys"][:SHOWN])
        lines.append(f"  {link['foreign_objects']:,} at the target that it did not copy, the first: {first}")
    limits = [f"{link['workers']} at once"]
    limits += [f"{size(link['bytes_per_second'])}/s"] if link["bytes_per_second"] else []
    limits += [f"{link['objects_per_second']:,} objects/s"] if link["objects_per_second"] else []
    of_store = link.get("store_bytes_per_second")
    limits += [f"with all rules to {link['region']} {size(of_store)}/s"] if of_store else []
    probe = f"; next try {until(link['next_probe_at'], now)}" if link["next_probe_at"] else ""
    return [*lines, f"  at most {', '.join(limits)}{probe}"]


def open_objects(page: dict[str, Any]) -> RenderableType:
    """Objects that are not copied yet, with why."""
    columns = ("Id", "Key", "Size", "Since", "Attempts", "Code", "Next try", "Message")
    rows = [
        (
            str(one["id"]),
            one["key"],
            size(one["size"]),
            ago(one["since"], page["as_of"]),
            str(one["attempts"]),
            one["code"] or UNKNOWN,
            until(one["next_try_at"], page["as_of"]),
            f"version {one['version']}: {one['message']}" if one["version"] else one["message"],
        )
        for one in page["results"]
    ]
    return listed(columns, rows, none="No failed objects.", more=page["pagination"]["has_more"])


def retried(answer: dict[str, Any]) -> RenderableType:
    """How many objects are tried now."""
    return line(f"Trying {count(answer['number'], 'object')} again now.")
