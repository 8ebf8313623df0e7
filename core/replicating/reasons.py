"""Why an object is not at its target, or a link does not work, in words: what is so, and what helps. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from core.replicating.states import Code

WORDS: Mapping[Code, str] = {
    Code.NONE: "not tried yet",
    Code.NOT_CONFIGURED: "a region of the rule is not configured any more",
    Code.SOURCE_DOWN: "the source's store does not answer",
    Code.SOURCE_FAILED: "the source's store answered with an error of its own",
    Code.SOURCE_BUCKET_NOT_FOUND: "the source's bucket does not exist",
    Code.SOURCE_DENIED: "the key may not read it at the source",
    Code.SOURCE_CHANGED: "it was overwritten while it was read",
    Code.SOURCE_ARCHIVED: "it is archived at the source, and not restored",
    Code.SOURCE_REFUSED: "the source's store refuses to give it",
    Code.TARGET_DOWN: "the target's store does not answer",
    Code.TARGET_FAILED: "the target's store answered with an error of its own",
    Code.TARGET_THROTTLED: "the target's store limits requests",
    Code.TARGET_FULL: "the target's store has no room",
    Code.TARGET_BUCKET_NOT_FOUND: "the target's bucket does not exist",
    Code.TARGET_UNVERSIONED: "the target's bucket does not keep versions any more",
    Code.TARGET_DENIED: "the key may not write it at the target",
    Code.TARGET_REFUSED: "the target's store refuses to take it",
    Code.SOURCE_TAGS_DENIED: "the key may not read its tags at the source",
    Code.TARGET_TAGS_DENIED: "the key may not write its tags at the target",
    Code.TARGET_LOCK_DENIED: "the key may not set its retention or legal hold at the target",
    Code.TARGET_LOCK_MISSING: "it is locked at the source, and the target's bucket has no Object Lock",
    Code.TARGET_KMS_KEY_NOT_FOUND: "the KMS key by which the target encrypts does not exist",
    Code.TARGET_KMS_KEY_STATE: "the KMS key by which the target encrypts is disabled, or is being deleted",
    Code.METADATA_REFUSED: "the target's store does not take its headers, metadata or tags",
    Code.STORAGE_CLASS_REFUSED: "the target's store does not know the storage class that the rule names",
    Code.LOCKED: "the target keeps it locked, for longer than the source does or though it is gone there",
    Code.LOCK_LOST: "the target has not the lock that the source has",
    Code.CUSTOMER_KEY: "it is encrypted with a customer's key, which LakeMirror has not",
    Code.KEY_TOO_LONG: "its key would be longer than 1,024 bytes at the target",
    Code.PARTS_DIFFER: "it was copied, but what the target tells of it does not prove it equal",
    Code.CONFLICT: "the target has something else under the version id of the source",
    Code.NOT_LISTED: "the target has it and does not list it, so nobody can tell which versions it has",
    Code.ONE_VERSION: "the target keeps one version of this directory object: a delete marker would delete that",
    Code.DELETE_DENIED: "the key may not delete it at the target",
    Code.TARGET_STALE: "what lies at the target is not what the link has pinned there",
    Code.SOURCE_EMPTY: "the source is empty, and had objects",
    Code.TARGET_REPOSITORY: "a repository of lakeFS lies at the target, or within it",
    Code.SOURCE_RECREATED: "the source's bucket was deleted and created anew",
    Code.INTERNAL: "LakeMirror failed; the worker's log says why",
}


def reason_words(code: str) -> str:
    """A code in words; that of a newer version as it is."""
    return WORDS[Code(code)] if code in set(Code) else code
