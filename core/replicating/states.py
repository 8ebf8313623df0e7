"""The words of replication rules: how a link stands, how an object that is not at its target stands, and why."""

from __future__ import annotations

from enum import StrEnum


class Health(StrEnum):
    """How a link stands. Down: its target (or source) does not answer. Blocked: one of them refuses everything."""

    UP = "up"
    DOWN = "down"
    BLOCKED = "blocked"


class Versions(StrEnum):
    """What is copied of a key: the object that readers see, or all versions and delete markers."""

    LATEST = "latest"
    ALL = "all"


class Order(StrEnum):
    """Which open objects of a link have their turn first: those that were noted last, or first."""

    NEW_FIRST = "new-first"
    OLDEST_FIRST = "oldest-first"


class OpenKind(StrEnum):
    """What is to be done about an object that is not at the target as it is at the source. Delete: it is gone at the
    source, and what the link has copied is still at the target. Where all versions are copied: hide, a delete marker is
    to hide what the target shows; purge, a version is gone at the source for good, and its copy still at the target."""

    COPY = "copy"
    DELETE = "delete"
    HIDE = "hide"
    PURGE = "purge"


class Prevails(StrEnum):
    """Which of two objects of one key stays where they differ: the source's, or the newer one."""

    SOURCE = "source"
    NEWEST = "newest"


class OpenStatus(StrEnum):
    """How an object stands that is not at the target as it is at the source. Failed: tried again once a day, when it
    changes or when somebody asks. Skipped: it can't be copied, or deleted, as it is now, for a reason of the object's
    own. Waiting: a deletion that nobody has let through yet. Deleting: one that is due."""

    PENDING = "pending"
    FAILED = "failed"
    SKIPPED = "skipped"
    WAITING = "waiting"
    DELETING = "deleting"


class ApprovalState(StrEnum):
    """What became of deletions that wait for somebody. Expired: nobody answered in time; they are asked for anew."""

    WAITING = "waiting"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"


class Code(StrEnum):
    """Why an object is not at its target, or a link does not work. AWS's words where it has one."""

    NONE = ""
    NOT_CONFIGURED = "NotConfigured"
    SOURCE_DOWN = "SourceDown"
    SOURCE_FAILED = "SourceFailed"
    SOURCE_BUCKET_NOT_FOUND = "SrcBucketNotFound"
    SOURCE_DENIED = "SrcGetObjectNotPermitted"
    SOURCE_CHANGED = "SourceChanged"
    SOURCE_ARCHIVED = "SourceArchived"
    SOURCE_REFUSED = "SourceRefused"
    TARGET_DOWN = "TargetDown"
    TARGET_FAILED = "TargetFailed"
    TARGET_THROTTLED = "TargetThrottled"
    TARGET_FULL = "TargetFull"
    TARGET_BUCKET_NOT_FOUND = "DstBucketNotFound"
    TARGET_UNVERSIONED = "DstBucketUnversioned"
    TARGET_DENIED = "DstPutObjectNotPermitted"
    TARGET_REFUSED = "TargetRefused"
    SOURCE_TAGS_DENIED = "SrcGetTaggingNotPermitted"
    TARGET_TAGS_DENIED = "DstPutTaggingNotPermitted"
    TARGET_LOCK_DENIED = "DstPutLockNotPermitted"
    TARGET_LOCK_MISSING = "DstBucketObjectLockConfigMissing"
    TARGET_KMS_KEY_NOT_FOUND = "DstKmsKeyNotFound"
    TARGET_KMS_KEY_STATE = "DstKmsKeyInvalidState"
    METADATA_REFUSED = "MetadataRefused"
    STORAGE_CLASS_REFUSED = "StorageClassRefused"
    LOCKED = "Locked"
    LOCK_LOST = "LockLost"
    CUSTOMER_KEY = "CustomerKey"
    KEY_TOO_LONG = "KeyTooLong"
    PARTS_DIFFER = "PartsDiffer"
    CONFLICT = "Conflict"
    ONE_VERSION = "OneVersionOnly"
    NOT_LISTED = "NotListed"
    DELETE_DENIED = "DstDelObjNotPermitted"
    TARGET_STALE = "TargetStale"
    SOURCE_EMPTY = "SourceEmpty"
    TARGET_REPOSITORY = "TargetIsRepository"
    SOURCE_RECREATED = "SourceRecreated"
    INTERNAL = "Internal"
