"""Is what was written before the replication rule at the mirror's place too, and how is it brought there? Pure.

Stores do not tell since when a rule is there. What one never took up has no status (x-amz-replication-status).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from core.errors import LakeMirrorError
from core.installations.preflight import Check, CheckOutcome, not_known
from core.installations.preflight_stores import OBJECTS, bucket_of, deciding_rule, prefix_of
from core.installations.unreplicated_objects import Lacking, Namespaces, say_lacking
from core.replication.causes import JUST_WRITTEN
from core.replication.facts import Found, SourceObject, Status, StoreKind
from core.types import ReplicationRule

SAMPLED = 20
"""The store is asked for the status of so many objects that the mirror lacks."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What the source's store says of some objects that are not at the mirror's place: `never` were never taken up, the
    last of them written at `last`; `on_way` are copied now, or were written just now; of the rest copies `failed`."""

    kind: StoreKind
    asked: int = 0
    never: int = 0
    last: datetime | None = None
    on_way: int = 0
    failed: int = 0

    def __str__(self) -> str:
        """A clause, "" where the store tells nothing."""
        if not self.asked or self.kind is StoreKind.OTHER:
            return ""
        written = f", the last one at {self.last:%Y-%m-%d %H:%M} UTC" if self.last else ""
        parts = [
            f"{self.never} written before the rule, or while it was off{written}" if self.never else "",
            f"{self.on_way} on the way" if self.on_way else "",
            f"{self.failed} that it failed to copy" if self.failed else "",
        ]
        told = "; ".join(part for part in parts if part)
        return f"Of the first {self.asked} the store has {told}" if told else ""


def sample_of(kind: StoreKind, heads: Collection[Found], now: datetime) -> Sample:
    """What HEADs at the source came to; those that say nothing of the replication only count as asked."""
    objects = [head for head in heads if isinstance(head, SourceObject)]
    new = [one for one in objects if one.status is Status.ABSENT and _is_new(one, now)]
    never = [one for one in objects if one.status is Status.ABSENT and one not in new]
    on_way = [one for one in objects if one.status is Status.PENDING]
    failed = sum(one.status is Status.FAILED for one in objects)
    last = max((one.written_at for one in never if one.written_at), default=None)
    return Sample(kind, len(objects), len(never), last, len(on_way) + len(new), failed)


def _is_new(one: SourceObject, now: datetime) -> bool:
    return one.written_at is not None and now - one.written_at < JUST_WRITTEN


def check_existing(
    places: Namespaces, answer: Lacking | LakeMirrorError, sample: Sample, rules: Sequence[ReplicationRule]
) -> Check:
    """The check of a plan. `sample`: of what is lacking."""
    check_id = "existing-objects"
    if isinstance(answer, LakeMirrorError):
        return not_known(check_id, f"how much of {places.source} is not in {places.mirror} yet", answer)
    message = say_lacking(places, answer)
    if answer.objects:
        message = f"{message}. {sample}" if str(sample) else message
        return Check(check_id, CheckOutcome.WARNING, message, _how_to_bring(places, sample.kind, rules))
    if not answer.whole:
        return Check(check_id, CheckOutcome.UNKNOWN, message, "Download the manifest: it names every missing object")
    return Check(check_id, CheckOutcome.OK, message)


def _how_to_bring(places: Namespaces, kind: StoreKind, rules: Sequence[ReplicationRule]) -> str:
    rule = deciding_rule(rules, prefix_of(places.source) + OBJECTS, bucket_of(places.mirror))
    if kind is StoreKind.AWS:
        store = "run S3 Batch Replication with the manifest below"
    elif kind is StoreKind.MINIO and rule is not None and rule.existing:
        store = "wait for MinIO's scanner, or start a resync (mc replicate resync start)"
    elif kind is StoreKind.MINIO:
        store = "let the rule replicate existing objects and start a resync (mc replicate resync start)"
    else:
        store = "copy them by S3 Batch Replication with the manifest below, or with any tool that preserves keys"
    return (
        f"A replication rule copies only what is written after it was created. For older objects {store}. Or let "
        "LakeMirror copy them: once with Bring it, when the mirror is there, or always, with managed replication. "
        "Recent writes may still be on their way"
    )
