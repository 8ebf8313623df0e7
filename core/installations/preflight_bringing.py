"""May LakeMirror bring the objects of a planned mirror itself? Checks in place of those of replication. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.errors import Denied, LakeMirrorError, NotFound, Unauthenticated
from core.installations.preflight import Check, CheckOutcome, NotAsked, failing, not_known
from core.installations.preflight_stores import bucket_of, prefix_of
from core.types import ReplicationRule

NOT_TRIED = NotAsked("nothing is written while you type", hint="Click Check: it starts an upload there and cancels it")


def check_double_work(source: str, destination: str, answer: Sequence[ReplicationRule] | LakeMirrorError) -> Check:
    """Does no rule of the source's bucket bring the same objects too?"""
    check_id, bucket, target = "object-replication", bucket_of(source), bucket_of(destination)
    managed = "LakeMirror copies the objects: neither a replication rule nor versioning is needed"
    if isinstance(answer, LakeMirrorError):
        return Check(check_id, CheckOutcome.OK, managed)
    prefix = prefix_of(source)
    leading = [rule for rule in answer if rule.enabled and not rule.tagged and rule.bucket == target]
    same = [rule for rule in leading if prefix.startswith(rule.prefix) or rule.prefix.startswith(prefix)]
    if prefix == prefix_of(destination) and same:
        message = f"The replication rule '{same[0].id}' of {bucket} copies objects to {target} too"
        return Check(check_id, CheckOutcome.WARNING, message, "Delete the rule, or choose native replication")
    return Check(check_id, CheckOutcome.OK, managed)


def check_writable(namespace: str, answers: Mapping[str, LakeMirrorError | None] | LakeMirrorError) -> Check:
    """Does the destination's store take objects from our key? `answers`: by action, what starting an upload and
    cancelling it came to."""
    check_id, place = "namespace-writable", f"{bucket_of(namespace)}/{prefix_of(namespace)}*"
    if isinstance(answers, LakeMirrorError):
        return not_known(check_id, f"whether LakeMirror may write below {namespace}", answers)
    for action, error in answers.items():
        if isinstance(error, (Denied, Unauthenticated)):
            fix = f"Grant the store's key {action} on arn:aws:s3:::{place}"
            return Check(check_id, CheckOutcome.FAILED, error.message, fix)
        if isinstance(error, NotFound):
            fix = f"Create the bucket {bucket_of(namespace)}"
            return Check(check_id, CheckOutcome.FAILED, error.message, fix)
        if error is not None:
            return failing(check_id, error)
    return Check(check_id, CheckOutcome.OK, f"LakeMirror may write below {namespace}")
