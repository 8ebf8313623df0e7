"""What a commit lacks, in words: what it is, what to do, and a code for programs."""

from __future__ import annotations

from dataclasses import dataclass

from core.mirroring.facts import CommitFacts, Thing, Waiting, Waived
from core.mirroring.object_check import WAIVABLE
from core.replication.causes import Cause
from core.text.phrases import Phrase, code, count, say, sentence, sentences, short

NOUNS = {
    "object": ("object", "objects"),
    "range": ("range file", "range files"),
    "metarange": ("metarange", "metaranges"),
    "record": ("record", "records"),
}
OBJECTS = NOUNS["object"]
"""What is of several kinds together: in a store, all of them are objects."""


@dataclass(frozen=True, slots=True)
class Lack:
    """`brief` fits a table row, `clause` goes into a sentence, `advice` is a sentence or empty."""

    code: str
    brief: Phrase
    clause: Phrase
    advice: Phrase


@dataclass(frozen=True, slots=True)
class _Reason:
    """How to speak of a reason. {region} and {source} are filled in; `one`/`many` follow the things' name."""

    brief: str
    one: str
    many: str
    advice: str


_REPLACE = "Have LakeMirror replace it, or copy it again from {source}"
_REASONS = {
    "missing": _Reason(
        "missing",
        "has not reached {region}",
        "have not reached {region}",
        "Check that the bucket replication from {source} runs and covers that place",
    ),
    "gone-at-source": _Reason(
        "missing at the source too",
        "is missing in {source} too",
        "are missing in {source} too",
        "Restore it in {source}, or make a new commit without it",
    ),
    "waived": _Reason(
        "missing, and waived",
        "is waived in {region}: history may lack it, the head of a branch may not",
        "are waived in {region}: history may lack them, the head of a branch may not",
        "Commit without it in {source}, bring it to {region}, or withdraw the waiver",
    ),
    "size-differs": _Reason(
        "has another size",
        "has another size in {region} than the commit says",
        "have another size in {region} than the commit says",
        _REPLACE,
    ),
    "etag-differs": _Reason(
        "has other content",
        "has other content in {region} than the commit says",
        "have other content in {region} than the commit says",
        _REPLACE,
    ),
    "content-differs": _Reason(
        "has other content",
        "has other bytes in {region} than in {source}",
        "have other bytes in {region} than in {source}",
        _REPLACE,
    ),
    "content-unproven": _Reason(
        "not compared yet",
        "could not be compared with {source}, which doesn't answer",
        "could not be compared with {source}, which doesn't answer",
        "Check that the object store in {source} can be reached",
    ),
    "damaged": _Reason(
        "damaged",
        "is damaged in {region}: its content does not match its id",
        "are damaged in {region}: their content does not match their ids",
        _REPLACE,
    ),
    "archived": _Reason(
        "archived",
        "is archived in {region} and can't be read",
        "are archived in {region} and can't be read",
        "Restore it from the archive there",
    ),
    "unreadable": _Reason(
        "can't be read",
        "can't be read in {region}, whose store returns other objects",
        "can't be read in {region}, whose store returns other objects",
        "Grant the access key of {region} s3:GetObject on it, and if it is encrypted kms:Decrypt on its KMS key",
    ),
    "imported": _Reason(
        "imported, not mirrored",
        "is imported and lies outside the repository's storage namespace, which is not mirrored",
        "are imported and lie outside the repository's storage namespace, which is not mirrored",
        "Copy it into the repository at the source and commit again",
    ),
    "imported-unreachable": _Reason(
        "imported, can't be reached",
        "is imported and can't be read from {region} at its own address",
        "are imported and can't be read from {region} at their own addresses",
        "Grant the access key of {region} s3:GetObject at that address",
    ),
}
_COPIED = frozenset({"missing", "size-differs", "etag-differs", "content-differs", "damaged"})
_REFUSED = _Reason(
    "record refused",
    "was refused by {region}: its content does not match its id",
    "",
    "The source's record is damaged. Check that commit in {source}",
)
_TAMPERED = _Reason(
    "record differs",
    "differs in {region} from the source's",
    "",
    "Somebody changed it there. Compare the two records before anything else",
)


def count_waiting(waiting: Waiting) -> str:
    """How much that is: "3 objects", "10,000+ objects", "nothing"."""
    return count_objects(waiting.number, more=waiting.more)


def count_objects(number: int, *, more: bool = False) -> str:
    """So many things that are missing or wrong, of whatever kinds; with `more` at least so many."""
    one, many = OBJECTS
    if more:
        return f"{number:,}+ {many}"
    return count(number, one, many) if number else "nothing"


def reason_of(thing: Thing) -> str:
    """The reason by its common name: a missing range and a missing object are both "missing"."""
    if thing.waived and not thing.gone_at_source and thing.reason in WAIVABLE:
        return "waived"
    return common_reason(thing.reason, gone=thing.gone_at_source)


def common_reason(reason: str, *, gone: bool = False) -> str:
    """The same of a reason's code."""
    return "gone-at-source" if gone else reason.removeprefix("metarange-").removeprefix("range-")


def tell_reason(reason: str, number: int, *, region: str, source_region: str) -> tuple[str, str]:
    """What so many things are by a common reason, as it follows their name, and what to do about it."""
    known = _REASONS.get(reason)
    if known is None:
        return f"can't be used: {reason.replace('-', ' ')}", ""
    clause, advice = known.one if number == 1 else known.many, known.advice
    return clause.format(region=region, source=source_region), advice.format(region=region, source=source_region)


def brief_reason(thing: Thing) -> str:
    """Why a thing blocks, in a few words."""
    known = _REASONS.get(reason_of(thing))
    return known.brief if known else reason_of(thing).replace("-", " ")


def describe_lack(commit: CommitFacts, *, region: str, source_region: str) -> Lack:
    """What keeps a commit that is in trouble from being complete."""
    if commit.record == "refused":
        return _of_record(commit, _REFUSED, "record_refused", region, source_region)
    if commit.record == "tampered":
        return _of_record(commit, _TAMPERED, "record_tampered", region, source_region)
    if commit.waived is not None:
        return _waived(commit, commit.waived)
    if commit.things:
        return _of_things(commit, region, source_region)
    return _unnamed(commit)


def _of_record(commit: CommitFacts, reason: _Reason, reason_code: str, region: str, source_region: str) -> Lack:
    clause = say("the record of ", short(commit.commit_id), " ", reason.one.format(region=region))
    advice = sentence(reason.advice.format(region=region, source=source_region))
    return Lack(reason_code, say(f"{reason.brief}: ", short(commit.commit_id)), clause, advice)


def _of_things(commit: CommitFacts, region: str, source_region: str) -> Lack:
    # Of those to speak of: not what is waived, then what waiting won't help first, then the oldest.
    worst = min(commit.things, key=lambda thing: (thing.waived, thing.arriving, thing.first_seen))
    number, others = _counted(commit, worst)
    reason = _REASONS.get(reason_of(worst)) or _unknown(worst)
    one, many = NOUNS.get(worst.kind, OBJECTS)
    brief = say(f"{count(number, one, many)} {reason.brief} for ", short(commit.commit_id))
    verb = (reason.one if number == 1 else reason.many).format(region=region, source=source_region)
    more = f", and {count(others, 'other object is', 'other objects are')} missing or wrong too" if others else ""
    clause = say(_subject(worst, number, one, many), " of ", short(commit.commit_id), " ", verb, more)
    advice = sentence(reason.advice.format(region=region, source=source_region))
    if commit.managed and is_copied(reason_of(worst)):
        advice = _copied(worst, source_region)
    elif worst.cause not in ("", Cause.NOT_TOLD):
        advice = sentences(sentence(worst.cause_told), sentence(worst.cause_advice) if worst.cause_advice else say())
    return Lack(f"{worst.kind}_{reason_of(worst).replace('-', '_')}", brief, clause, advice)


def is_copied(reason: str) -> bool:
    """Whether LakeMirror ends what is so called by copying, where it copies a mirror's objects."""
    return reason in _COPIED


def _copied(thing: Thing, source_region: str) -> Phrase:
    """That nobody has to copy it, and what kept us from that. A blocker's detail says it after what is wrong."""
    _, _, why = thing.detail.partition("; ")
    tried = sentence(why) if why else say()
    return sentences(say(f"LakeMirror copies it from {source_region} and tries again by itself."), tried)


def _counted(commit: CommitFacts, worst: Thing) -> tuple[int, int]:
    """How many things are like the worst one, as far as is known, and how many are otherwise."""
    number = max(commit.lacking, len(commit.things))
    alike = sum((thing.kind, reason_of(thing)) == (worst.kind, reason_of(worst)) for thing in commit.things)
    return (number, 0) if alike == len(commit.things) else (alike, number - alike)


def _subject(thing: Thing, number: int, one: str, many: str) -> Phrase:
    if number > 1:
        return say(count(number, one, many))
    if thing.kind == "object":
        return say("object ", code(thing.path or thing.address))
    return say(f"the {one}") if thing.kind in ("metarange", "record") else say(f"a {one}")


def _unknown(thing: Thing) -> _Reason:
    words = thing.detail or thing.reason.replace("-", " ")
    return _Reason(words, f"can't be used: {words}", f"can't be used: {words}", "")


def _waived(commit: CommitFacts, waived: Waived) -> Lack:
    words = f" was waived by {waived.by} ({waived.reason}), so no branch moves to it"
    clause = say(short(commit.commit_id), words)
    advice = sentence("withdraw the waiver if it can be read, or move the branch on at the source")
    return Lack("commit_waived", say(short(commit.commit_id), " is waived"), clause, advice)


def _unnamed(commit: CommitFacts) -> Lack:
    words = commit.detail or "its data is not complete"
    clause = say(short(commit.commit_id), " waits: ", words)
    return Lack("data_waiting", say("waits for ", short(commit.commit_id)), clause, say())
