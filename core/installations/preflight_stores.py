"""Will objects arrive in the planned namespace, and can they be seen there? Checks of stores and clocks. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from core.errors import Denied, LakeMirrorError, NotFound, Unauthenticated, Unreachable
from core.installations.preflight import Check, CheckOutcome, failing, not_known
from core.mirroring.content_proof import OWN_FILES
from core.mirroring.rpo import in_words
from core.types import ReplicationRule

CLOSE_SECONDS = 60
SIGNATURE_SECONDS = 15 * 60
"""Stores refuse what was signed by a clock that is further off."""

SHOWN = 3
OBJECTS, METADATA = "data/", "_lakefs/"
PARTS = (OBJECTS, METADATA)
"""What lakeFS keeps in a namespace: objects, and the files of commits."""


# --- the namespace's content ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Listing:
    """The first keys of a namespace, ascending, below it; `whole`: there are no others."""

    keys: Sequence[str]
    whole: bool


def check_bucket(namespace: str, answer: Listing | LakeMirrorError) -> Check:
    """Does the destination's store show us the place?"""
    check_id, bucket = "namespace-bucket", bucket_of(namespace)
    if isinstance(answer, NotFound):
        fix = (
            f"Create the bucket {bucket}, or choose a namespace in an existing one. "
            "If it is in another store, configure that store's endpoint (`stores` in the configuration)"
        )
        return Check(check_id, CheckOutcome.FAILED, answer.message, fix)
    if isinstance(answer, (Denied, Unauthenticated)):
        fix = f"Grant the store's key s3:ListBucket on {bucket}, and s3:GetObject and s3:PutObject on its objects"
        return Check(check_id, CheckOutcome.FAILED, answer.message, fix)
    if isinstance(answer, Unreachable):
        return Check(check_id, CheckOutcome.FAILED, answer.message, "Make sure that this machine can reach the store")
    if isinstance(answer, LakeMirrorError):
        return failing(check_id, answer)
    return Check(check_id, CheckOutcome.OK, f"The bucket {bucket} exists and can be listed")


def check_content(
    namespace: str, at_destination: Listing | LakeMirrorError, at_source: Listing | LakeMirrorError
) -> Check:
    """Is the place empty, or holds only what the source's namespace holds too?"""
    check_id = "namespace-content"
    if isinstance(at_destination, LakeMirrorError):
        return not_known(check_id, f"what is in {namespace}", at_destination)
    keys = [key for key in at_destination.keys if not key.startswith(OWN_FILES)]
    own = ", except for files of an earlier mirror" if len(keys) < len(at_destination.keys) else ""
    if not keys:
        return Check(check_id, CheckOutcome.OK, f"{namespace} is empty{own}")
    seen = f"{len(keys):,}{'' if at_destination.whole else ' or more'}"
    if isinstance(at_source, LakeMirrorError):
        return not_known(check_id, f"whether the {seen} objects in {namespace} are the source's", at_source)
    if foreign := _foreign(keys, at_source):
        listed = ", ".join(foreign[:SHOWN]) + (" …" if len(foreign) > SHOWN else "")
        message = f"{namespace} holds objects that the source's namespace does not: {listed}"
        fix = (
            "Choose a namespace of its own for the mirror; continue only if the source has deleted these objects since"
        )
        return Check(check_id, CheckOutcome.WARNING, message, fix)
    message = f"{namespace} holds {seen} objects, all of which the source's namespace holds too"
    return Check(check_id, CheckOutcome.OK, message if at_destination.whole else f"{message}; the rest was not checked")


def _foreign(keys: Iterable[str], at_source: Listing) -> list[str]:
    """Keys that the source's listing would have shown."""
    known = set(at_source.keys)
    last = at_source.keys[-1] if at_source.keys else ""
    return [key for key in keys if key not in known and (at_source.whole or key <= last)]


def check_metadata_prefix(side: str, region: str, found: bool | LakeMirrorError) -> Check:
    """Does this lakeFS keep its metadata below `_lakefs`, where a mirror looks for it?"""
    check_id = f"{side}-metadata-prefix"
    fix = f"Set committed.block_storage_prefix to _lakefs in the configuration of the lakeFS of {region}"
    if isinstance(found, LakeMirrorError):
        return not_known(check_id, f"where the lakeFS of {region} keeps its metadata", found, fix)
    if not found:
        message = f"The lakeFS of {region} has written no metadata below _lakefs/, where mirrors expect it"
        return Check(check_id, CheckOutcome.FAILED, message, fix)
    return Check(check_id, CheckOutcome.OK, f"The lakeFS of {region} keeps its metadata below _lakefs/")


# --- replication ------------------------------------------------------------------------------------------------------


def bucket_of(namespace: str) -> str:
    """The bucket of s3://bucket/prefix."""
    return namespace.partition("://")[2].partition("/")[0]


def prefix_of(namespace: str) -> str:
    """What the keys of a namespace begin with; "" for a whole bucket."""
    below = namespace.partition("://")[2].partition("/")[2].strip("/")
    return f"{below}/" if below else ""


def check_versioning(side: str, namespace: str, answer: str | LakeMirrorError) -> Check:
    """S3 replicates between buckets with versions only."""
    check_id, bucket = f"{side}-versioning", bucket_of(namespace)
    if isinstance(answer, LakeMirrorError):
        return not_told(check_id, f"versioning of {bucket}", answer, "s3:GetBucketVersioning", bucket)
    if answer == "Enabled":
        return Check(check_id, CheckOutcome.OK, f"Versioning of {bucket} is enabled")
    fix = f"Enable versioning of {bucket} (PutBucketVersioning, Status=Enabled)"
    return Check(
        check_id, CheckOutcome.FAILED, f"Versioning of {bucket} is not enabled, and S3 replication requires it", fix
    )


def check_replication(source: str, destination: str, answer: Sequence[ReplicationRule] | LakeMirrorError) -> Check:
    """Will the store bring what lakeFS keeps in namespace `source` to `destination`? One rule may, or several
    together. Replication keeps keys."""
    check_id, bucket, target = "replication-rule", bucket_of(source), bucket_of(destination)
    if isinstance(answer, LakeMirrorError):
        return not_told(
            check_id, f"the replication rules of {bucket}", answer, "s3:GetReplicationConfiguration", bucket
        )
    prefix = prefix_of(source)
    by_part = {part: deciding_rule(answer, prefix + part, target) for part in PARTS}
    if without := [part for part, rule in by_part.items() if rule is None]:
        return Check(check_id, CheckOutcome.FAILED, *_no_rule(answer, source, target, without))
    if prefix != prefix_of(destination):
        arrives = f"s3://{target}/{prefix}".rstrip("/")
        message = f"Replication preserves keys: objects of {source} arrive in {arrives}, not in {destination}"
        return Check(check_id, CheckOutcome.FAILED, message, f"Use {arrives} as the storage namespace")
    ids = list(dict.fromkeys(rule.id for rule in by_part.values() if rule is not None))
    if len(ids) == 1:
        message = f"The replication rule '{ids[0]}' of {bucket} copies {source} to {target}"
    else:
        message = f"The replication rules '{ids[0]}' and '{ids[1]}' of {bucket} together copy {source} to {target}"
    return Check(check_id, CheckOutcome.OK, message)


def deciding_rule(rules: Sequence[ReplicationRule], key: str, target: str) -> ReplicationRule | None:
    """The rule by which everything below this key goes to that bucket: of several the one with the highest priority."""
    covering = [rule for rule in _at_work(rules) if rule.bucket == target and key.startswith(rule.prefix)]
    return max(covering, key=lambda rule: rule.priority, default=None)


def _at_work(rules: Sequence[ReplicationRule]) -> list[ReplicationRule]:
    """Objects of lakeFS have no tags."""
    return [rule for rule in rules if rule.enabled and not rule.tagged]


def check_proxy(region: str, shown: str | LakeMirrorError) -> Check:
    """Does the store show others what only the source has? `shown`: such a key, below the namespace; "" for none."""
    check_id = "destination-proxy"
    if isinstance(shown, LakeMirrorError):
        what = f"whether the store of {region} serves objects that only the source has"
        fix = "Check it manually: MinIO does so where a rule back to the source has proxying enabled"
        return not_known(check_id, what, shown, fix)
    if not shown:
        return Check(check_id, CheckOutcome.OK, f"The store of {region} serves only objects that it has itself")
    message = f"While the source is up, the store of {region} serves objects that only the source has, such as {shown}"
    fix = (
        "LakeMirror detects this, but readers and other tools don't. Disable proxying on the rule back to the source "
        "(mc replicate update --proxy disable), or accept it"
    )
    return Check(check_id, CheckOutcome.WARNING, message, fix)


def _no_rule(rules: Sequence[ReplicationRule], source: str, target: str, without: Sequence[str]) -> tuple[str, str]:
    """Why nothing arrives, or what is `without` a rule does not, and what to do, from the likeliest rule."""
    bucket, prefix = bucket_of(source), prefix_of(source)
    make = f"a replication rule for the prefix '{prefix}' of {bucket} with the destination {target}"
    meant = _meant(rules, [prefix + part for part in without], target)
    elsewhere = [rule for rule in _at_work(rules) if prefix.startswith(rule.prefix)]
    if meant is None and elsewhere:
        other = elsewhere[0].bucket
        message = f"{_named(elsewhere[0])} of {bucket} copies {source} to {other}, not to {target}"
        return message, f"Create {make}, or use a namespace in {other}"
    if meant is None:
        return f"No replication rule of {bucket} copies {source} to {target}", (
            f"Create {make}, and copy existing objects; if another tool copies the objects, continue"
        )
    if not meant.enabled:
        return f"{_named(meant)} of {bucket} is disabled", "Enable it"
    if meant.tagged:
        return f"{_named(meant)} of {bucket} applies only to tagged objects, and lakeFS tags none", f"Create {make}"
    missing = " and ".join(f"'{prefix}{part}'" for part in without)
    message = f"{_named(meant)} of {bucket} covers only '{meant.prefix}', not all of {source}: none copies {missing}"
    if len(without) < len(PARTS):
        return message, f"Change its prefix to '{prefix}', or create another rule for {missing}"
    return message, f"Change its prefix to '{prefix}'" if prefix else "Remove its prefix"


def _meant(rules: Sequence[ReplicationRule], keys: Sequence[str], target: str) -> ReplicationRule | None:
    """The rule to that bucket which would copy these keys if it were at work, else any that leads there."""
    leading = [rule for rule in rules if rule.bucket == target]
    return next(
        (rule for rule in leading if any(key.startswith(rule.prefix) for key in keys)), next(iter(leading), None)
    )


def _named(rule: ReplicationRule) -> str:
    return f"The replication rule '{rule.id}'"


# --- clocks -----------------------------------------------------------------------------------------------------------


def check_clock(check_id: str, whose: str, ahead: float | LakeMirrorError | None, *, signed: bool = False) -> Check:
    """Do a clock and this machine's agree? `signed`: requests are refused when they are far apart."""
    if isinstance(ahead, LakeMirrorError):
        return not_known(check_id, f"the clock of {whose}", ahead)
    if ahead is None:
        return Check(check_id, CheckOutcome.UNKNOWN, f"{whose[0].upper()}{whose[1:]} does not report the time")
    if abs(ahead) <= CLOSE_SECONDS:
        return Check(check_id, CheckOutcome.OK, f"The clock of {whose} agrees with this machine's")
    message = f"The clock of {whose} is {in_words(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'} this machine's"
    refused = signed and abs(ahead) >= SIGNATURE_SECONDS
    return Check(
        check_id, CheckOutcome.FAILED if refused else CheckOutcome.WARNING, message, "Synchronise both clocks by NTP"
    )


def not_told(check_id: str, what: str, error: LakeMirrorError, right: str, bucket: str) -> Check:
    """A store that may not tell us, or can't: neither says that something is wrong."""
    fix = f"Grant the store's key {right} on {bucket}, or check it manually"
    return not_known(check_id, what, error, fix if isinstance(error, Denied) else "Check it manually")
