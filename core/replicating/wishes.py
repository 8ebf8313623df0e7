"""What somebody wants a replication rule to be: its name, its places, how fast. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.errors import Invalid
from core.exporting.destinations import check_place
from core.installations.places import inside
from core.replicating.deletes import DELETE_MOST, DELETE_PERCENT, MOST_MOST
from core.replicating.states import Order, Prevails, Versions
from core.travelling.describing import Metadata, Terms, check_metadata, check_storage_class, check_tags

MOST_TARGETS = 8
RESERVED = frozenset({"new", "preflight", "estimate", "dry-run"})
"""Names that would hide a page or a call."""
SCAN_EVERY = 300
SHORTEST_SCAN, LONGEST_SCAN = 60, 30 * 86400
MOST_SWEEP_HEADS = 10_000
USUAL_METADATA = Metadata.ALL.value
"""What travels unless somebody says otherwise."""
LAST_PRIORITY = 1000
WORKERS = 16
BOUNDS: Mapping[str, tuple[int, int]] = {
    "workers": (1, 1000),
    "bytes_per_second": (1, 10**15),
    "objects_per_second": (1, 10**9),
}
"""The least and the most of each limit of a link. Bytes and objects may be None: no limit."""
STORE_BYTES = "store_bytes_per_second"
"""What all links to one store may write there together: from 1 MB, for each of them has some of it; None: no limit."""
STORE_BOUNDS = (10**6, 10**15)
_NAME = re.compile(r"[a-z0-9-]{1,63}")


@dataclass(frozen=True, slots=True)
class TargetWish:
    """Where to, and how fast."""

    region: str
    uri: str
    workers: int = WORKERS
    bytes_per_second: int | None = None
    objects_per_second: int | None = None

    @property
    def limits(self) -> dict[str, int | None]:
        """How fast, by the names of BOUNDS."""
        return {name: getattr(self, name) for name in BOUNDS}


@dataclass(frozen=True, slots=True)
class RuleWish:
    """A rule as it is asked for. `existing`: objects older than it; `new`: those that come after it. `overwrite`: its
    targets may hold objects already, and those that differ from the source's may be replaced. `versions`: `latest` or
    `all`, versions and delete markers too. `tags`: all of which an object has to have; `metadata`: a name of Metadata;
    "": all. `markers`: deletions are followed; `purges`:
    where all versions are copied, those of single versions; more than `delete_percent` of what a link has, or than
    `delete_most`, at once wait for approval. `conflict`: whose object stays where source and target differ, a name of
    Prevails. `priority` among links that share a limit of their store: lower ones come first; `order` of what is open,
    a name of Order."""

    name: str
    region: str
    uri: str
    targets: Sequence[TargetWish]
    existing: bool = True
    new: bool = True
    scan_every: int = SCAN_EVERY
    labels: Mapping[str, str] = field(default_factory=dict)
    overwrite: bool = False
    markers: bool = False
    purges: bool = False
    delete_percent: int = DELETE_PERCENT
    delete_most: int = DELETE_MOST
    versions: str = Versions.LATEST.value
    conflict: str = Prevails.SOURCE.value
    tags: Mapping[str, str] = field(default_factory=dict)
    metadata: str = ""
    storage_class: str = ""
    sweep_heads_per_second: int = 0
    priority: int = 0
    order: str = Order.NEW_FIRST.value

    @property
    def both_ways(self) -> bool:
        """Whether the newer of two objects stays, so that other rules may lead back."""
        return self.conflict == Prevails.NEWEST.value

    @property
    def all_versions(self) -> bool:
        """Whether versions and delete markers are copied, too."""
        return self.versions == Versions.ALL.value

    @property
    def terms(self) -> Terms:
        """What goes with the bytes, and which tags objects need. Of a wish that was checked."""
        return Terms(Metadata(self.metadata or USUAL_METADATA), self.tags, self.storage_class)


def check_name(name: str) -> str:
    """The name as it is. Raises Invalid for what can be none."""
    if not _NAME.fullmatch(name):
        hint = "Use 1 to 63 lower-case letters, digits and hyphens"
        raise Invalid(f"'{name[:80]}' is not a valid rule name", field="name", hint=hint)
    if name in RESERVED:
        raise Invalid(
            f"'{name}' can't be a rule's name: LakeMirror uses it itself", field="name", hint="Choose another"
        )
    return name


def check_versions(versions: str) -> None:
    """Raises Invalid for what is neither `latest` nor `all`."""
    if versions not in set(Versions):
        hint = "latest: the object that readers see; all: every version and delete marker"
        raise Invalid(f"'{versions[:20]}' is not what can be copied of a key", field="versions", hint=hint)


def check_conflict(conflict: str, heads: int) -> None:
    """Raises Invalid for what is neither `source` nor `newest`, and for a sweep with the latter."""
    if conflict not in set(Prevails):
        hint = "source: what differs at a target is replaced; newest: the newer object stays, on either side"
        raise Invalid(f"'{conflict[:20]}' does not say whose object stays", field="conflict", hint=hint)
    if conflict == Prevails.NEWEST and heads:
        text = "with conflict=newest no change of metadata is copied: nobody can tell which side's is newer"
        raise Invalid(text, field="sweep_heads_per_second", hint="Set it to 0, or leave it out")


def check_kinds(existing: bool, new: bool) -> None:
    """Raises Invalid for a rule that would copy nothing."""
    if not existing and not new:
        hint = "Set one of the two; to stop for a while, pause the rule"
        raise Invalid("neither existing nor new objects would be copied", field="new", hint=hint)


def check_deletes(percent: int, most: int) -> None:
    """Raises Invalid for bounds that are none."""
    if not 0 <= percent <= 100:
        raise Invalid("must be from 0 to 100", field="delete_percent", hint="0 has every deletion wait for approval")
    if not 0 <= most <= MOST_MOST:
        hint = "0 has every deletion wait for approval"
        raise Invalid(f"must be from 0 to {MOST_MOST:,}", field="delete_most", hint=hint)


def check_purges(versions: str, purges: bool, conflict: str) -> None:
    """Raises Invalid for deletions of versions that nobody copies, and where rules lead both ways."""
    if purges and versions != Versions.ALL.value:
        hint = "Set versions to all; to follow deletions of the latest objects, markers"
        raise Invalid("only a rule that copies all versions can follow purges", field="purges", hint=hint)
    if purges and conflict == Prevails.NEWEST:
        text = "with conflict=newest purges are not followed: nobody can tell them from what has not come yet"
        raise Invalid(text, field="purges", hint="Leave it out, and delete such versions on each side")


def check_followed(versions: str, markers: bool) -> None:
    """Raises Invalid for two ways of deleting at once."""
    if markers and versions == Versions.ALL.value:
        hint = "Leave it out: delete markers are copied with all versions"
        raise Invalid("a rule that copies all versions has no use for it", field="markers", hint=hint)


def check_turns(given: Mapping[str, Any]) -> None:
    """Raises Invalid for a priority or an order that is none. What is not given is not looked at."""
    if not 0 <= given.get("priority", 0) <= LAST_PRIORITY:
        raise Invalid(f"must be from 0 to {LAST_PRIORITY:,}", field="priority", hint="0 comes first")
    if given.get("order", Order.NEW_FIRST) not in set(Order):
        raise Invalid("is no order", field="order", hint="new-first or oldest-first")


def check_scan_every(seconds: int) -> None:
    """Raises Invalid for what is too often or too seldom."""
    if not SHORTEST_SCAN <= seconds <= LONGEST_SCAN:
        text = f"must be from {SHORTEST_SCAN} to {LONGEST_SCAN:,} seconds"
        raise Invalid(text, field="scan_every")


def check_travelling(given: Mapping[str, Any]) -> None:
    """Raises Invalid for the first of a rule's fields of that kind that can't be: which tags objects need, what travels
    with them. What is not given is not looked at."""
    if "tags" in given:
        check_tags(given["tags"])
    if given.get("metadata"):
        check_metadata(given["metadata"])
    if "storage_class" in given:
        check_storage_class(given["storage_class"])
    heads = given.get("sweep_heads_per_second", 0)
    if not 0 <= heads <= MOST_SWEEP_HEADS:
        text = f"must be from 0 to {MOST_SWEEP_HEADS:,} a second"
        raise Invalid(text, field="sweep_heads_per_second", hint="0 compares no metadata of what is equal")


def check_together(given: Terms, heads: int, *, purges: bool) -> None:
    """Raises Invalid for what does not go together: a sweep that could find nothing, and purges of versions of which
    nobody can tell any more whether they had the tags."""
    if heads and not given.all:
        text = "with metadata=content no change of metadata is copied"
        hint = "Set metadata to all, or sweep_heads_per_second to 0"
        raise Invalid(text, field="sweep_heads_per_second", hint=hint)
    if purges and given.tags:
        text = "purges are not followed where tags decide: of a version that is gone nobody can tell which it had"
        raise Invalid(text, field="purges", hint="Leave out purges, or tags")


def check_limits(limits: Mapping[str, Any], prefix: str = "") -> None:
    """Raises Invalid for the first limit that lets nothing through, or that no column holds."""
    for name, limit in limits.items():
        least, most = BOUNDS[name]
        if limit is None and name != "workers":
            continue
        if limit is None or not least <= limit <= most:
            none = "" if name == "workers" else ", or empty for no limit"
            raise Invalid(f"{name.replace('_', ' ')} must be from {least} to {most:,}{none}", field=f"{prefix}{name}")


def check_store_limit(limit: int | None) -> None:
    """Raises Invalid for what is too little for several, or no column holds."""
    least, most = STORE_BOUNDS
    if limit is not None and not least <= limit <= most:
        raise Invalid(f"must be from {least:,} to {most:,}, or empty for no limit", field=STORE_BYTES)


def checked_places(source: str, targets: Sequence[str]) -> tuple[str, list[str]]:
    """The addresses without slashes at their ends. Raises Invalid, naming the field, for what is no address of S3, and
    for no target or too many."""
    if not targets:
        raise Invalid("a rule needs at least one target", field="targets")
    if len(targets) > MOST_TARGETS:
        hint = "Make another rule of the same source for the others"
        raise Invalid(f"a rule has {MOST_TARGETS} targets at most", field="targets", hint=hint)
    fields = (f"targets.{number}.uri" for number in range(len(targets)))
    return check_place(source, "source.uri"), [
        check_place(uri, name) for uri, name in zip(targets, fields, strict=True)
    ]


def address(uri: str) -> str:
    """A place as it is stored, however it is written; what is no address as it is."""
    try:
        return check_place(uri, "uri")
    except Invalid:
        return uri


def told_overlap(target: str, other: str, what: str) -> str:
    """How two places that overlap lie to each other; `what` the other one is."""
    if target == other:
        return f"{target} is {what}"
    return f"{target} lies in {what}" if inside(target, other) else f"{target} holds {what}"
