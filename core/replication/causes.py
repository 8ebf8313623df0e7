"""Why has an object not arrived that the stores should have copied? A code, one sentence, and what to do.

Statuses and reasons of failures: S3 User Guide, "Getting replication status information" and "Replication failure
reasons"; MinIO's are the same where it has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from core.errors import Denied, Invalid, LakeMirrorError
from core.installations.preflight_stores import bucket_of, prefix_of
from core.mirroring.rpo import in_words
from core.replication.facts import Failure, Found, Setup, SourceObject, Status, StoreKind
from core.text.phrases import count
from core.types import ReplicationRule

JUST_WRITTEN = timedelta(minutes=1)
"""So long a store may take to give an object its first status."""
BRING = "let LakeMirror copy it once with Bring it"
_ARCHIVES = ("GLACIER", "DEEP_ARCHIVE")


class Cause(StrEnum):
    """Why an object has not arrived, by the code that the API and the command compare; people read its `words`."""

    NO_RULE = "NoRule"
    BEFORE_RULE = "BeforeRule"
    PENDING = "Pending"
    PENDING_LONG = "PendingLong"
    FAILED_FOR_GOOD = "FailedForGood"
    FAILED_RETRIED = "FailedRetried"
    COMPLETED_BUT_MISSING = "CompletedButMissing"
    LINK_DOWN = "LinkDown"
    TARGET_DENIED = "TargetDenied"
    KMS_KEY = "KmsKey"
    LOCK_MISSING = "LockMissing"
    UNVERSIONED = "Unversioned"
    ARCHIVED = "Archived"
    SOURCE_MISSING = "SourceMissing"
    NOT_ELIGIBLE = "NotEligible"
    RIGHTS_MISSING = "RightsMissing"
    NOT_TOLD = "NotTold"
    NOT_REPLACED = "NotReplaced"

    @property
    def words(self) -> str:
        """The same for people, as the head of a line."""
        return _WORDS[self]


_WORDS = {
    Cause.NO_RULE: "No rule covers it",
    Cause.BEFORE_RULE: "Older than the rule",
    Cause.PENDING: "On its way",
    Cause.PENDING_LONG: "On its way for too long",
    Cause.FAILED_FOR_GOOD: "Failed for good",
    Cause.FAILED_RETRIED: "Failed, and is tried again",
    Cause.COMPLETED_BUT_MISSING: "Reported as copied, but missing",
    Cause.LINK_DOWN: "Link down",
    Cause.TARGET_DENIED: "Denied at the destination",
    Cause.KMS_KEY: "KMS key",
    Cause.LOCK_MISSING: "No Object Lock at the destination",
    Cause.UNVERSIONED: "No versioning",
    Cause.ARCHIVED: "Archived at the source",
    Cause.SOURCE_MISSING: "Missing at the source",
    Cause.NOT_ELIGIBLE: "Never replicated by stores",
    Cause.RIGHTS_MISSING: "Not allowed to look",
    Cause.NOT_TOLD: "The store gives no status",
    Cause.NOT_REPLACED: "Not replaced",
}
ON_ITS_WAY = frozenset({Cause.PENDING, Cause.NOT_TOLD})
"""With these, waiting may be all that it takes."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`told` says why, `advice` what to do ("" for nothing): sentences without their full stops."""

    cause: Cause
    told: str
    advice: str = ""


def why_kept(told: str) -> Verdict:
    """Of an object with other content that somebody had replaced: it was not, and why."""
    advice = "Look at both objects, and copy the right one by hand, or move the branch on at the source"
    return Verdict(Cause.NOT_REPLACED, f"it was not replaced: {told}", advice)


def covering_rules(rules: Sequence[ReplicationRule], key: str, bucket: str) -> list[ReplicationRule]:
    """Those that bring the object of this key to that bucket; objects of lakeFS have no tags."""
    return [
        rule
        for rule in rules
        if rule.enabled and not rule.tagged and rule.bucket == bucket and key.startswith(rule.prefix)
    ]


def is_covered(setup: Setup, address: str) -> bool:
    """Whether a rule brings what lies at this address of the source to the mirror's namespace. Only then is it worth
    asking the store for the object's status."""
    if isinstance(setup.rules, LakeMirrorError) or prefix_of(setup.source) != prefix_of(setup.destination):
        return False
    key = prefix_of(setup.source) + address
    return bool(covering_rules(setup.rules, key, bucket_of(setup.destination)))


def find_cause(setup: Setup, address: str, found: Found, failure: Failure | None, now: datetime) -> Verdict:
    """Why what should be at a relative address of the destination is not there. `found`: the source's object (asked
    for only where `is_covered`)."""
    of_setup = cause_of_setup(setup, address)
    if of_setup is not None:
        return of_setup
    assert not isinstance(setup.rules, LakeMirrorError)
    bucket = bucket_of(setup.source)
    if found is None:
        told = f"{bucket} does not have it either"
        return Verdict(Cause.SOURCE_MISSING, told, "Restore it in the source's bucket, or commit again without it")
    if isinstance(found, LakeMirrorError):
        return _unread(bucket, found)
    [rule, *_] = covering_rules(setup.rules, prefix_of(setup.source) + address, bucket_of(setup.destination))
    if found.status is Status.ABSENT:
        return _without_status(setup, rule, found, now)
    return _BY_STATUS[found.status](setup, found, failure, now)


# --- what is so for every object of a place ---------------------------------------------------------------------------


def cause_of_setup(setup: Setup, address: str) -> Verdict | None:
    """What keeps everything like it from arriving, whatever the store says of this object; None: nothing does."""
    source, target = bucket_of(setup.source), bucket_of(setup.destination)
    if isinstance(setup.rules, LakeMirrorError):
        return _rules_unread(source, setup.rules)
    if prefix_of(setup.source) != prefix_of(setup.destination):
        told = f"replication keeps keys: objects of {setup.source} arrive in s3://{target}/{prefix_of(setup.source)}"
        return Verdict(Cause.NO_RULE, told, f"Use managed replication, or {BRING}")
    if not is_covered(setup, address):
        return _no_rule(setup, setup.rules, address)
    for bucket, versioning in ((source, setup.source_versioning), (target, setup.destination_versioning)):
        if not isinstance(versioning, LakeMirrorError) and versioning != "Enabled":
            told = f"{bucket} keeps no versions, and stores replicate only between buckets that do"
            return Verdict(Cause.UNVERSIONED, told, f"Enable versioning of {bucket}")
    return None


def _rules_unread(bucket: str, error: LakeMirrorError) -> Verdict:
    if isinstance(error, Denied):
        told = f"LakeMirror may not read the replication rules of {bucket}, so nobody knows whether one covers it"
        advice = f"Grant the source's access key s3:GetReplicationConfiguration on arn:aws:s3:::{bucket}"
        return Verdict(Cause.RIGHTS_MISSING, told, advice)
    return Verdict(Cause.NOT_TOLD, f"the replication rules of {bucket} can't be read: {error.message}")


def _no_rule(setup: Setup, rules: Sequence[ReplicationRule], address: str) -> Verdict:
    source, target = bucket_of(setup.source), bucket_of(setup.destination)
    key = prefix_of(setup.source) + address
    place = f"{address.partition('/')[0]}/" if "/" in address else address
    told = f"no enabled replication rule of {source} brings {place} to {target}"
    meant = [rule for rule in rules if rule.bucket == target]
    if off := [rule for rule in meant if not rule.enabled and key.startswith(rule.prefix)]:
        return Verdict(Cause.NO_RULE, f"{told}: the rule '{off[0].id}' is disabled", "Enable it")
    if tagged := [rule for rule in meant if rule.tagged and key.startswith(rule.prefix)]:
        told = f"{told}: the rule '{tagged[0].id}' takes only objects with tags, and lakeFS's have none"
    elif meant:
        told = f"{told}: the rule '{meant[0].id}' covers only '{meant[0].prefix}'"
    elif rules:
        told = f"{told}: the rule '{rules[0].id}' leads to {rules[0].bucket}"
    other = "; if something else copies the objects, check that" if setup.kind is StoreKind.OTHER else ""
    prefix = f" for the prefix '{prefix_of(setup.source)}'" if prefix_of(setup.source) else ""
    return Verdict(Cause.NO_RULE, told, f"Add a rule{prefix}, or use managed replication{other}")


def _unread(bucket: str, error: LakeMirrorError) -> Verdict:
    if isinstance(error, Denied):
        told = f"LakeMirror may not ask {bucket} for it, so nobody knows whether the store has copied it"
        return Verdict(Cause.RIGHTS_MISSING, told, f"Grant the source's access key s3:GetObject on {bucket}/*")
    if isinstance(error, Invalid):
        told = f"{bucket} refuses to tell of it, as stores do of objects encrypted by a key that only the writer has"
        return Verdict(Cause.NOT_ELIGIBLE, told, "Write it again at the source with another encryption")
    return Verdict(Cause.NOT_TOLD, f"{bucket} can't be asked for it: {error.message}")


# --- what the store says of the object --------------------------------------------------------------------------------


def _without_status(setup: Setup, rule: ReplicationRule, found: SourceObject, now: datetime) -> Verdict:
    source = bucket_of(setup.source)
    if found.encryption.startswith("customer"):
        told = "it is encrypted by a key that only its writer has, and stores do not replicate such objects"
        return Verdict(Cause.NOT_ELIGIBLE, told, "Write it again at the source with another encryption")
    if found.encryption.startswith("aws:kms") and not rule.kms and setup.kind is StoreKind.AWS:
        told = f"it is encrypted by the KMS key {found.kms_key or 'of its bucket'}, and the rule '{rule.id}' leaves out"
        return Verdict(Cause.KMS_KEY, f"{told} such objects", "Let the rule replicate objects encrypted with AWS KMS")
    if found.storage_class in _ARCHIVES:
        told = f"it is archived in {source} ({found.storage_class}), and stores do not replicate what is archived"
        return Verdict(Cause.ARCHIVED, told, f"Restore it in {source}, then {BRING}")
    if setup.kind is StoreKind.OTHER:
        told = f"the store of {source} has a rule for it ('{rule.id}'), and does not say how far it is"
        return Verdict(Cause.NOT_TOLD, told, f"If it lasts, look at the store's replication, or {BRING}")
    if found.written_at is not None and now - found.written_at < JUST_WRITTEN:
        return Verdict(Cause.PENDING, "it was written just now, and the store has not begun with it")
    told = f"it was written before the rule '{rule.id}' of {source}, or while that was disabled"
    if setup.kind is StoreKind.MINIO and rule.existing:
        return Verdict(
            Cause.BEFORE_RULE, told, f"Wait for MinIO's scanner, start a resync (mc replicate resync), or {BRING}"
        )
    how = "start a resync (mc replicate resync)" if setup.kind is StoreKind.MINIO else "run S3 Batch Replication"
    return Verdict(Cause.BEFORE_RULE, told, f"{how[:1].upper()}{how[1:]}, or {BRING}")


def _pending(setup: Setup, found: SourceObject, failure: Failure | None, now: datetime) -> Verdict:
    since = f"{found.written_at:%Y-%m-%d %H:%M} UTC" if found.written_at else "it was written"
    age = now - found.written_at if found.written_at else timedelta()
    if age <= setup.usual:
        return Verdict(Cause.PENDING, f"the store is copying it, since {since}")
    if (down := _link(setup)) is not None:
        return down
    told = f"the store has had it pending for {in_words(age.total_seconds())}"
    target = bucket_of(setup.destination)
    return Verdict(Cause.PENDING_LONG, told, f"Check the link to {target}, the store's workers, and {target} itself")


def _failed(setup: Setup, found: SourceObject, failure: Failure | None, now: datetime) -> Verdict:
    if failure is not None and failure.reason:
        return _for_reason(setup, found, failure.reason)
    if (down := _link(setup)) is not None:
        return down
    target = bucket_of(setup.destination)
    if setup.kind is StoreKind.MINIO:
        told = f"MinIO failed to copy it to {target}, and tries again by itself; it does not say why"
        return Verdict(Cause.FAILED_RETRIED, told, f"Check that {target} takes writes by the rule's key, or {BRING}")
    told = f"the store failed to copy it to {target}, and does not try again; it does not say why"
    advice = f"Check that the rule's role may write to {target}, then run Batch Replication for it, or {BRING}"
    return Verdict(Cause.FAILED_FOR_GOOD, told, advice)


def _completed(setup: Setup, found: SourceObject, failure: Failure | None, now: datetime) -> Verdict:
    target = bucket_of(setup.destination)
    told = f"the store says that it was copied, and {target} does not have it: deleted there, copied to another bucket"
    advice = f"Check whether somebody deletes in {target}, and that the rule's target is this very bucket, or {BRING}"
    return Verdict(Cause.COMPLETED_BUT_MISSING, f"{told}, or to a target that was replaced", advice)


def _replica(setup: Setup, found: SourceObject, failure: Failure | None, now: datetime) -> Verdict:
    told = f"it is itself a copy that another bucket's rule brought to {bucket_of(setup.source)}"
    advice = f"Stores do not pass on copies: add a rule from the first bucket to {bucket_of(setup.destination)}"
    return Verdict(Cause.NOT_ELIGIBLE, f"{told}, and is not replicated again", f"{advice}, or {BRING}")


_BY_STATUS = {
    Status.PENDING: _pending,
    Status.FAILED: _failed,
    Status.COMPLETED: _completed,
    Status.REPLICA: _replica,
}


def _link(setup: Setup) -> Verdict | None:
    """That copies to the bucket fail now, by the store's own count."""
    target = bucket_of(setup.destination)
    attempts = setup.attempts.get(target)
    if attempts is None or not attempts.failed_last_minute:
        return None
    failed = f"{count(attempts.failed_last_minute, 'copy', 'copies')} to {target} failed in the last minute"
    told = f"the store can't reach {target}, or is refused there: {failed}, {attempts.failed_last_hour:,} in an hour"
    return Verdict(Cause.LINK_DOWN, told, f"Check the network from the source's store to {target}, and the rule's key")


# --- reasons of failures ----------------------------------------------------------------------------------------------

_DENIED = {
    "AssumeRoleNotPermitted": "S3 may not assume the rule's role",
    "SrcGetObjectNotPermitted": "the rule's role may not read the source's object",
    "SrcObjectNotEligible": "the source's object is not eligible",
    "DstPutObjectNotPermitted": "the rule's role may not write to {target}",
    "DstMultipartInitiateNotPermitted": "the rule's role may not begin uploads in {target}",
    "DstMultipartCompleteNotPermitted": "the rule's role may not complete uploads in {target}",
    "DstMultipartUploadPartNotPermitted": "the rule's role may not upload parts to {target}",
    "DstDelObjNotPermitted": "the rule's role may not replicate deletions to {target}",
    "DstPutTaggingNotPermitted": "the rule's role may not tag objects in {target}",
    "DstPutAclNotPermitted": "the rule's role may not set ACLs in {target}",
    "DstBucketNotFound": "there is no bucket {target}",
    "DstBucketInvalidRegion": "{target} is in another region than the rule says",
}


def _for_reason(setup: Setup, found: SourceObject, reason: str) -> Verdict:
    """A failure with the store's own word for why."""
    target = bucket_of(setup.destination)
    said = f" (the store says {reason})"
    if "Kms" in reason:
        told = f"the store failed to copy it, for a KMS key of {target} is missing or disabled{said}"
        read = f" and {found.kms_key}, by which it is encrypted at the source" if found.kms_key else ""
        return Verdict(Cause.KMS_KEY, told, f"Enable that key, and let the rule's role use it{read}")
    if "ObjectLock" in reason:
        told = f"the store failed to copy it: it is locked, and {target} has no Object Lock{said}"
        return Verdict(Cause.LOCK_MISSING, told, f"Enable Object Lock of {target}")
    if "Unversioned" in reason:
        return Verdict(Cause.UNVERSIONED, f"{target} keeps no versions{said}", f"Enable versioning of {target}")
    if reason in _DENIED:
        told = f"the store failed to copy it: {_DENIED[reason].format(target=target)}{said}"
        return Verdict(Cause.TARGET_DENIED, told, f"Allow that to the rule's role or key, then {BRING}")
    told = f"the store failed to copy it to {target}{said}"
    cause = Cause.FAILED_RETRIED if setup.kind is StoreKind.MINIO else Cause.FAILED_FOR_GOOD
    return Verdict(cause, told, f"See what that means in the store's documentation, or {BRING}")
