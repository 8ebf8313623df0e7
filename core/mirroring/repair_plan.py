"""What would bring a commit back: who brings each thing that it lacks, and what a retry looks at; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from core.mirroring.explain.blocker_text import NOUNS, OBJECTS, common_reason, is_copied, tell_reason
from core.mirroring.object_check import Imported, Reason
from core.replication.causes import ON_ITS_WAY, Cause
from core.text.phrases import count

RECORD = "record"
_READ = (Reason.CONTENT, Reason.UNPROVEN)


class Way(StrEnum):
    """Who brings it: LakeMirror copies it, the bucket's replication does, somebody has to mend it, or nobody can."""

    COPIED = "copied"
    AWAITED = "awaited"
    MENDED = "mended"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Group:
    """Things of one kind that are missing or wrong for one reason. `bytes` is None where nobody knows.

    `cause`: why the stores' replication has not brought them, `told` in a sentence, with `advice`; "" if nobody asked.
    `asked`: LakeMirror copies or replaces them now, in place of the stores, for somebody wants it.
    """

    kind: str
    reason: str
    gone_at_source: bool
    number: int
    bytes: int | None = None
    cause: str = ""
    told: str = ""
    advice: str = ""
    asked: bool = False


@dataclass(frozen=True, slots=True)
class RepairStep:
    """A part of the plan in words. `advice` is what somebody may do about it, or empty."""

    way: Way
    kind: str
    reason: str
    number: int
    bytes: int | None
    told: str
    advice: str
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is missing, by who brings it, and what a retry costs.

    A retry asks the destination's store `looks` times (HEAD), the source's as often at most, reads `reads` objects and
    sends `records`. `more`: that is not all, for only so much is noted by name.
    """

    steps: Sequence[RepairStep]
    looks: int
    reads: int
    records: int
    more: bool

    @property
    def helps(self) -> bool:
        """Whether there is anything that a retry can look at."""
        return bool(self.looks or self.records)


def plan_repair(
    groups: Iterable[Group],
    *,
    records: int,
    more: bool,
    imported: str,
    region: str,
    source_region: str,
    managed: bool = False,
    held: str = "",
) -> Plan:
    """The plan for what a commit needs. `records`: commits whose record is still to be copied; `managed`: LakeMirror
    copies the objects, unless something keeps it from that now, which `held` says, and what to do about it."""
    groups = list(groups)
    steps = [_copied(records, region)] if records else []
    steps += [_step(group, region, source_region, managed, held) for group in groups]
    looked_for = [group for group in groups if _is_looked_for(group, imported)]
    return Plan(
        steps=sorted(steps, key=lambda step: list(Way).index(step.way)),
        looks=sum(group.number for group in looked_for),
        reads=sum(group.number for group in looked_for if group.reason in _READ),
        records=records,
        more=more,
    )


def _copied(records: int, region: str) -> RepairStep:
    what = count(records, "commit record is", "commit records are")
    message = f"{what} still to be copied to {region}: LakeMirror does that itself"
    return RepairStep(Way.COPIED, RECORD, "pending", records, None, message, "")


def _step(group: Group, region: str, source_region: str, managed: bool, held: str) -> RepairStep:
    reason = common_reason(group.reason, gone=group.gone_at_source)
    clause, advice = tell_reason(reason, group.number, region=region, source_region=source_region)
    message = f"{count(group.number, *NOUNS.get(group.kind, OBJECTS))} {clause}"
    if managed and not group.gone_at_source and is_copied(reason):
        advice = held or f"LakeMirror copies it from {source_region} and tries again by itself"
        way = Way.MENDED if held else Way.COPIED
        return RepairStep(way, group.kind, reason, group.number, group.bytes, message, advice)
    if group.asked and not group.gone_at_source:
        advice = "LakeMirror copies it now, as somebody asked for it"
        return RepairStep(Way.COPIED, group.kind, reason, group.number, group.bytes, message, advice)
    if reason == "missing" and not managed and group.cause not in ("", Cause.NOT_TOLD):
        way = Way.AWAITED if group.cause in ON_ITS_WAY else Way.MENDED
        message = f"{message}: {group.told}"
        return RepairStep(way, group.kind, reason, group.number, group.bytes, message, group.advice, group.cause)
    return RepairStep(_way(group), group.kind, reason, group.number, group.bytes, message, advice)


def _way(group: Group) -> Way:
    if group.gone_at_source:
        return Way.GONE
    return Way.AWAITED if common_reason(group.reason) == "missing" else Way.MENDED


def _is_looked_for(group: Group, imported: str) -> bool:
    """A record that was refused never is, nor an imported object that the mirror doesn't allow."""
    return group.kind != RECORD and (group.reason != Reason.IMPORTED or imported == Imported.ALLOW)
