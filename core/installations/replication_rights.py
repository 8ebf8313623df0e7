"""What LakeMirror's own user needs at a lakeFS and its store: for each repository there, by what is done with it.

The preflight tries these rights, and policies are made of them. lakeFS's mirroring reference lists some more, which
none of LakeMirror's calls needs: they are told as such, and are in no policy that is made here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from core.access.documents import Document, allow, policy_document, whole
from core.access.policies import namespace_arn
from core.installations.preflight_stores import bucket_of, prefix_of
from core.mirroring.content_proof import OWN_FILES, UPLOAD_MARKS


class Side(StrEnum):
    """What a repository is to us; the last two are places of replication rules, which need no lakeFS."""

    SOURCE = "source"
    DESTINATION = "destination"
    EXPORTED = "exported"
    COPIED_FROM = "copied-from"
    COPIED_TO = "copied-to"


LIST_REPOSITORIES = "fs:ListRepositories"
"""Of all that are there: to find out whether a place is somebody else's."""
_READ = ("fs:ReadRepository", "fs:ListBranches", "fs:ReadBranch", "fs:ReadCommit", "fs:ListCommits")
_READ_MIRRORED = (*_READ, "retention:GetGarbageCollectionRules")
_WRITE = (
    LIST_REPOSITORIES,
    "fs:ListObjects",
    "fs:CreateCommit",
    "fs:CreateBranch",
    "fs:RevertBranch",
    "fs:DeleteBranch",
)
LIST_TAGS = "fs:ListTags"
_READ_TAGS = (LIST_TAGS,)
_WRITE_TAGS = ("fs:ReadTag", "fs:CreateTag", "fs:DeleteTag")

_MAKES = "that would create a repository"
UNUSED = "LakeMirror works without it; lakeFS's own reference for replication asks for it"
UNTRIED: Mapping[str, Mapping[str, str]] = {
    Side.SOURCE: {"fs:ReadObject": UNUSED, "fs:ListObjects": UNUSED},
    Side.DESTINATION: {
        "fs:CreateRepository": _MAKES,
        "fs:AttachStorageNamespace": _MAKES,
        "fs:DeleteRepository": "that would delete a repository",
        "fs:UpdateRepository": UNUSED,
        "fs:ReadObject": UNUSED,
        "fs:WriteObject": UNUSED,
        "fs:DeleteObject": UNUSED,
    },
}
"""The other rights of lakeFS's reference, by side and action, with the reason why no call tries them."""


def tried(side: str, *, tags: bool, follows_gc: bool = False) -> tuple[str, ...]:
    """What is needed of a repository, as far as calls can show it. A mirror that follows the garbage collection keeps
    what tags name, whether or not it mirrors them."""
    reads_tags = _READ_TAGS if tags or follows_gc else ()
    if side == Side.DESTINATION:
        return (*_READ_MIRRORED, *_WRITE, *reads_tags, *(_WRITE_TAGS if tags else ()))
    return (*(_READ_MIRRORED if side == Side.SOURCE else _READ), *reads_tags)


def needed(side: str, *, tags: bool, follows_gc: bool = False) -> tuple[str, ...]:
    """All that is needed: what is tried, and what can't be."""
    own = tried(side, tags=tags, follows_gc=follows_gc)
    return (*own, *(action for action, why in UNTRIED.get(side, {}).items() if why != UNUSED))


@dataclass(frozen=True, slots=True)
class Need:
    """A repository that we work with. `namespace`: its s3:// address, "" where it is not known; `place`: where it is
    exported to, or that a rule copies, "" for none in this store. `managed`: its objects are brought by us;
    `follows_gc`: and deleted where the source's garbage collection took them; `versions`: the rule copies all of
    them; `purges`: and deletes those that the source has no more; `travels`: tags and locks, too, or it chooses by
    tags."""

    side: Side
    repository: str
    namespace: str = ""
    tags: bool = False
    place: str = ""
    managed: bool = False
    follows_gc: bool = False
    versions: bool = False
    purges: bool = False
    travels: bool = False


Grant = tuple[Sequence[str], Sequence[str]]
"""Actions, and the resources that they are allowed on."""


# --- lakeFS -----------------------------------------------------------------------------------------------------------


def lakefs_policy(name: str, needs: Iterable[Need]) -> Document:
    """The policy for our user at one lakeFS, in its form: for these repositories alone."""
    merged = _merged([((LIST_REPOSITORIES,), ("*",)), *(grant for need in needs for grant in _of_repository(need))])
    return policy_document(name, *(allow(actions, *resources) for actions, resources in merged))


def wide_lakefs_policy(name: str) -> Document:
    """The same for whatever may come, on every repository."""
    return policy_document(name, allow(needed(Side.DESTINATION, tags=True)))


def _of_repository(need: Need) -> Iterator[Grant]:
    if need.side in _PLACES:
        return
    elsewhere = (LIST_REPOSITORIES, "fs:AttachStorageNamespace")
    actions = needed(need.side, tags=need.tags, follows_gc=need.follows_gc)
    yield [action for action in actions if action not in elsewhere], whole(need.repository)
    if need.side is Side.DESTINATION:
        yield ["fs:AttachStorageNamespace"], [namespace_arn(_literal(need.namespace))]


# --- the store --------------------------------------------------------------------------------------------------------

_READ_BUCKET = ("s3:ListBucket", "s3:GetBucketVersioning", "s3:GetReplicationConfiguration")
_READ_MORE: Mapping[Side, tuple[str, ...]] = {
    Side.SOURCE: ("s3:ListBucketVersions",),
    Side.DESTINATION: ("s3:GetLifecycleConfiguration",),
}
_WRITE_EXPORT = (
    "s3:GetObject",
    "s3:PutObject",
    "s3:PutObjectTagging",
    "s3:DeleteObject",
    "s3:AbortMultipartUpload",
    "s3:ListMultipartUploadParts",
)
_SWEEP = ("s3:DeleteObject", "s3:GetObjectRetention", "s3:GetObjectLegalHold")
"""HEAD tells of an object's lock only to whom it may."""


_PLACES = (Side.COPIED_FROM, Side.COPIED_TO)
_LIST_COPIED = ("s3:ListBucket",)
_READ_COPIED = ("s3:GetObject",)
_WRITE_COPIED = ("s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")
_READ_TRAVELLING = ("s3:GetObjectTagging", "s3:GetObjectRetention", "s3:GetObjectLegalHold")
_WRITE_TRAVELLING = (
    "s3:PutObjectTagging",
    "s3:DeleteObjectTagging",
    "s3:PutObjectRetention",
    "s3:PutObjectLegalHold",
)
_READ_VERSION_TAGS = ("s3:GetObjectVersionTagging",)
_WRITE_VERSION_TAGS = ("s3:PutObjectVersionTagging", "s3:DeleteObjectVersionTagging")
"""Of single versions, where all are copied."""
PROBES = "_lakemirror_probe_"
"""What the names of objects begin with that are written before a rule is created, and removed again."""


def store_policy(needs: Iterable[Need]) -> Document | None:
    """The policy for our key at one store, in the form of AWS; None where no place is known.

    ListBucket is for the whole bucket: with a condition on `s3:prefix` a store answers 403 for an object that is not
    there, in place of 404, and nothing could be told of what is missing.
    """
    merged = _merged([grant for need in needs for grant in _of_place(need)])
    statements = [{"Effect": "Allow", "Action": list(actions), "Resource": on} for actions, on in merged]
    return {"Version": "2012-10-17", "Statement": statements} if statements else None


def _of_place(need: Need) -> Iterator[Grant]:
    if need.side in _PLACES:
        yield from _of_copies(need)
        return
    if need.namespace.startswith("s3://"):
        yield (*_READ_BUCKET, *_READ_MORE.get(need.side, ())), [_bucket(need.namespace)]
        yield ["s3:GetObject"], [_below(need.namespace)]
    if need.namespace.startswith("s3://") and need.side is Side.EXPORTED:
        yield ["s3:GetObjectTagging"], [_below(need.namespace)]
    if need.namespace.startswith("s3://") and need.side is Side.DESTINATION:
        yield ["s3:PutObject"], [_below(need.namespace, "" if need.managed else OWN_FILES)]
        if need.managed:
            yield ["s3:ListBucketMultipartUploads"], [_bucket(need.namespace)]
            yield ["s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"], [_below(need.namespace)]
            sweeps, ends_uploads = (_SWEEP, ""), (("s3:DeleteObject",), UPLOAD_MARKS)
            actions, folder = sweeps if need.follows_gc else ends_uploads
            yield actions, [_below(need.namespace, folder)]
    if need.place:
        yield ["s3:ListBucket", "s3:ListBucketMultipartUploads"], [_bucket(need.place)]
        yield _WRITE_EXPORT, [_below(need.place)]


def _of_copies(need: Need) -> Iterator[Grant]:
    """A place that a rule reads, or writes."""
    if need.versions:
        yield ("s3:ListBucketVersions", "s3:GetBucketVersioning"), [_bucket(need.place)]
        yield ["s3:GetObjectVersion"], [_below(need.place)]
    if need.side is Side.COPIED_FROM:
        yield _LIST_COPIED, [_bucket(need.place)]
        yield _READ_COPIED, [_below(need.place)]
        if need.travels:
            yield (*_READ_TRAVELLING, *(_READ_VERSION_TAGS if need.versions else ())), [_below(need.place)]
        return
    if need.travels:
        yield ["s3:GetBucketObjectLockConfiguration"], [_bucket(need.place)]
        of_versions = (*_READ_VERSION_TAGS, *_WRITE_VERSION_TAGS) if need.versions else ()
        yield (*_READ_TRAVELLING, *_WRITE_TRAVELLING, *of_versions), [_below(need.place)]
    yield (*_LIST_COPIED, "s3:ListBucketMultipartUploads"), [_bucket(need.place)]
    yield (*_READ_COPIED, *_WRITE_COPIED), [_below(need.place)]
    if need.versions:
        yield ("s3:DeleteObject", "s3:ReplicateObject"), [_below(need.place)]
        yield ["s3:DeleteObjectVersion"], [_below(need.place, "" if need.purges else PROBES)]
    if need.purges:
        yield ("s3:GetObjectRetention", "s3:GetObjectLegalHold"), [_below(need.place)]
    yield ["s3:DeleteObject"], [_below(need.place, UPLOAD_MARKS), _below(need.place, PROBES)]


def _bucket(place: str) -> str:
    return f"arn:aws:s3:::{bucket_of(place)}"


def _below(place: str, folder: str = "") -> str:
    return f"{_bucket(place)}/{_literal(prefix_of(place))}{folder}*"


def _literal(text: str) -> str:
    """For a resource, in which `*` would stand for anything and `${` begin a variable: `?` is any one character."""
    return text.replace("*", "?").replace("$", "?")


def _merged(grants: Iterable[Grant]) -> list[tuple[tuple[str, ...], list[str]]]:
    """What is allowed to the same actions is one statement; in the order that the actions come."""
    resources: dict[tuple[str, ...], dict[str, None]] = {}
    for actions, on in grants:
        resources.setdefault(tuple(actions), {}).update(dict.fromkeys(on))
    return [(actions, list(on)) for actions, on in resources.items()]
