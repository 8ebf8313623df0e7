"""What is deleted at the source: does it go at the destination too, and does nothing else go there? Pure.

lakeFS collects garbage at the source alone, among objects: there it leaves delete markers. They have to be replicated,
and a lifecycle rule of the destination's bucket has to remove what is below them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from core.errors import Denied, LakeMirrorError
from core.installations.preflight import Check, CheckOutcome, NotAsked, not_known
from core.installations.preflight_stores import OBJECTS, bucket_of, deciding_rule, not_told, prefix_of
from core.mirroring.explain.gc_rules import BothRules, RulesRead, own_rules_advice, retention, say_own_rules
from core.types import GcRules, LifecycleRule, ReplicationRule


def check_delete_markers(source: str, destination: str, answer: Sequence[ReplicationRule] | LakeMirrorError) -> Check:
    """Do deletions of the source's objects arrive in the bucket of namespace `destination`?"""
    check_id, bucket, target = "replication-delete-markers", bucket_of(source), bucket_of(destination)
    what = f"whether deletions in {bucket} are replicated to {target}"
    if isinstance(answer, LakeMirrorError):
        return not_told(check_id, what, answer, "s3:GetReplicationConfiguration", bucket)
    rule = deciding_rule(answer, prefix_of(source) + OBJECTS, target)
    if rule is None:
        fix = "The tool that copies the objects must also delete them once garbage collection has at the source"
        return not_known(check_id, what, NotAsked("no replication rule copies the objects there"), fix)
    named = f"The replication rule '{rule.id}' of {bucket}"
    if rule.delete_markers:
        return Check(check_id, CheckOutcome.OK, f"{named} replicates deletions to {target}")
    message = (
        f"{named} does not replicate delete markers: what garbage collection deletes at the source stays in {target}"
    )
    return Check(check_id, CheckOutcome.WARNING, message, "Set its DeleteMarkerReplication to Enabled")


def check_lifecycle(namespace: str, answer: Sequence[LifecycleRule] | LakeMirrorError) -> Check:
    """Is what was deleted in the destination's namespace removed for good some day?"""
    check_id, bucket, prefix = "destination-lifecycle", bucket_of(namespace), prefix_of(namespace)
    if isinstance(answer, LakeMirrorError):
        what = f"whether {bucket} removes deleted objects for good"
        return not_told(check_id, what, answer, "s3:GetLifecycleConfiguration", bucket)
    covering = [rule for rule in _at_work(answer) if not rule.sized and (prefix + OBJECTS).startswith(rule.prefix)]
    removing = [rule for rule in covering if rule.expires_noncurrent]
    make = (
        f"Create a lifecycle rule of {bucket} for the prefix '{prefix}' with NoncurrentVersionExpiration and "
        "ExpiredObjectDeleteMarker"
    )
    if not removing:
        message = (
            f"No lifecycle rule of {bucket} removes deleted objects in {namespace} for good: they use space for ever"
        )
        return Check(check_id, CheckOutcome.WARNING, message, make)
    named = f"The lifecycle rule '{removing[0].id}' of {bucket}"
    if not any(rule.expires_markers or rule.expires_current for rule in covering):
        message = (
            f"{named} removes deleted objects in {namespace}, but their delete markers stay and slow down listings"
        )
        return Check(check_id, CheckOutcome.WARNING, message, "Add ExpiredObjectDeleteMarker to it")
    return Check(check_id, CheckOutcome.OK, f"{named} removes deleted objects in {namespace} for good")


def check_expiration(namespace: str, answer: Sequence[LifecycleRule] | LakeMirrorError) -> Check:
    """Does the store delete or archive, by itself, what commits need? They need objects of any age."""
    check_id, bucket, prefix = "destination-expiration", bucket_of(namespace), prefix_of(namespace)
    if isinstance(answer, LakeMirrorError):
        what = f"whether {bucket} deletes objects automatically"
        return not_told(check_id, what, answer, "s3:GetLifecycleConfiguration", bucket)
    touching = [rule for rule in _at_work(answer) if rule.prefix.startswith(prefix) or prefix.startswith(rule.prefix)]
    away = f"or give it a prefix outside of '{prefix}'" if prefix else "or give it a bucket of its own"
    if expiring := _first(touching, lambda rule: rule.expires_current):
        message = (
            f"The lifecycle rule '{expiring.id}' of {bucket} deletes old objects in {namespace} that commits still "
            "need: the mirror would be damaged"
        )
        return Check(check_id, CheckOutcome.FAILED, message, f"Remove Expiration (Days, Date) from it, {away}")
    if archiving := _first(touching, lambda rule: bool(rule.archives_current)):
        message = (
            f"The lifecycle rule '{archiving.id}' of {bucket} moves objects in {namespace} to "
            f"{archiving.archives_current}, where nobody can read them without a restore: the mirror would be damaged"
        )
        return Check(check_id, CheckOutcome.FAILED, message, f"Remove that transition, {away}")
    return Check(check_id, CheckOutcome.OK, f"No lifecycle rule of {bucket} deletes or archives what is in {namespace}")


def check_source_rules(name: str, arn: str, answer: GcRules | LakeMirrorError | None) -> Check:
    """What does garbage collection keep at the source?"""
    check_id, what = "source-gc-rules", f"the garbage-collection rules of '{name}'"
    if isinstance(answer, LakeMirrorError):
        return not_known(check_id, what, answer, _to_read_rules(arn, answer))
    if answer is None:
        return Check(check_id, CheckOutcome.OK, f"'{name}' has no garbage-collection rules")
    kept = retention(answer)
    return Check(
        check_id,
        CheckOutcome.OK,
        f"Garbage collection keeps objects that no branch of '{name}' needs any more for {kept}",
    )


def check_mirror_rules(
    name: str,
    source: str,
    namespace: str,
    arn: str,
    rules: tuple[GcRules | LakeMirrorError | None, GcRules | LakeMirrorError | None] | None,
) -> Check:
    """Has the repository that is to be adopted rules of its own? `rules` are the source's, and its; None: there is no
    such repository yet."""
    check_id = "destination-gc-rules"
    if rules is None:
        message = f"'{name}' will be created as a read-only repository, in which lakeFS collects no garbage"
        return Check(check_id, CheckOutcome.OK, message)
    both = BothRules(*map(RulesRead.of, rules))
    error = next((answer for answer in reversed(rules) if isinstance(answer, LakeMirrorError)), None)
    if error is not None:
        what = f"whether '{name}' has garbage-collection rules of its own"
        return not_known(check_id, what, error, _to_read_rules(arn, error))
    if both.own is not None:
        message = say_own_rules(both, name=name, source=source, namespace=namespace)
        advice = own_rules_advice(both, source=source, namespace=namespace)
        return Check(check_id, CheckOutcome.WARNING, message[:1].upper() + message[1:], advice)
    return Check(check_id, CheckOutcome.OK, f"'{name}' has no garbage-collection rules but those of '{source}'")


def _to_read_rules(arn: str, error: LakeMirrorError) -> str:
    return f"Grant the key's user retention:GetGarbageCollectionRules on {arn}" if isinstance(error, Denied) else ""


def _at_work(rules: Sequence[LifecycleRule]) -> list[LifecycleRule]:
    """Objects of lakeFS have no tags."""
    return [rule for rule in rules if rule.enabled and not rule.tagged]


def _first(rules: Sequence[LifecycleRule], is_one: Callable[[LifecycleRule], bool]) -> LifecycleRule | None:
    return next(filter(is_one, rules), None)
