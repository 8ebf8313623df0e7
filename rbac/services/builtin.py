"""The policies and groups that every LakeMirror begins with, and the templates with blanks to fill.

Actions of the replicator templates are, word for word, those that lakeFS's mirroring reference lists, and what it
leaves out: those of tags, and to read the rules of garbage collection. Its narrow form grants branch calls on
`repository/{id}` alone, but servers check `repository/{id}/branch/{ref}`, and `.../tag/{tag}`: ours adds the
repository's `/*`.
"""

from __future__ import annotations

import re

from core.access.documents import Document, allow, policy_document, whole
from core.access.policies import alert_arn, namespace_arn, repository_arn
from core.access.rule_rights import rule_arn
from core.errors import Invalid
from rbac import services
from rbac.models import Group, Policy

ADMINS = "Admins"
VIEWERS = "Viewers"
OPERATORS = "Operators"

_READ_SOURCE = (
    "fs:ReadRepository",
    "fs:ReadObject",
    "fs:ListObjects",
    "fs:ReadCommit",
    "fs:ListCommits",
    "fs:ReadBranch",
    "fs:ListBranches",
)
_READ_TAGS = ("fs:ListTags",)
_READ_RULES = ("retention:GetGarbageCollectionRules",)
_KEEP_TAGS = ("fs:CreateTag", "fs:DeleteTag", "fs:ReadTag", "fs:ListTags")
_KEEP_MIRROR = (
    "fs:ReadRepository",
    "fs:CreateRepository",
    "fs:UpdateRepository",
    "fs:DeleteRepository",
    "fs:AttachStorageNamespace",
    "fs:ReadObject",
    "fs:WriteObject",
    "fs:DeleteObject",
    "fs:ListObjects",
    "fs:CreateCommit",
    "fs:ReadCommit",
    "fs:ListCommits",
    "fs:CreateBranch",
    "fs:DeleteBranch",
    "fs:RevertBranch",
    "fs:ReadBranch",
    "fs:ListBranches",
)
_REPLICATE = (*_KEEP_MIRROR[:4], "fs:ListRepositories", *_KEEP_MIRROR[4:])
_OWN_CREDENTIALS = (
    "auth:CreateCredentials",
    "auth:DeleteCredentials",
    "auth:ListCredentials",
    "auth:ReadCredentials",
)
_ONESELF = "arn:lakefs:auth:::user/${user}"
_OPERATE = (
    "fs:OperateMirror",
    "fs:PauseExport",
    "fs:RunExport",
    "fs:AcknowledgeAlert",
    "fs:ManageMaintenance",
    "fs:OperateReplicationRule",
)
EARLIER: dict[str, tuple[tuple[str, ...], ...]] = {
    "Operators": (_OPERATE[:3], _OPERATE[:4], _OPERATE[:5]),
    "ReplicationPolicy": (_REPLICATE, (*_REPLICATE, *_KEEP_TAGS)),
}
"""The actions that earlier versions allowed by these policies, on everything."""
_EVERYTHING = ("fs:*", "auth:*", "ci:*", "retention:*", "branches:*", "pr:*")


def replicator() -> Document:
    """What the service's own user may do on an installation: the wide form."""
    return policy_document("ReplicationPolicy", allow((*_REPLICATE, *_KEEP_TAGS, *_READ_RULES)))


def replicator_for(*, source: str, mirror: str, namespace: str) -> Document:
    """The narrow form: for one source repository and one mirror. Invalid if a blank is badly filled."""
    _check_name(source, "source")
    _check_name(mirror, "mirror")
    _check_namespace(namespace)
    return policy_document(
        "ReplicationPolicy",
        allow(["fs:ListRepositories"]),
        allow((*_READ_SOURCE, *_READ_TAGS, *_READ_RULES), *whole(source)),
        allow((*_KEEP_MIRROR, *_KEEP_TAGS, *_READ_RULES), *whole(mirror)),
        allow(["fs:AttachStorageNamespace"], namespace_arn(namespace)),
    )


def mirror_admin() -> Document:
    """Who may create, edit, list and delete mirrors by our API and pages."""
    return policy_document(
        "MirrorAdmin",
        allow(["fs:ListRepositories"]),
        allow(["fs:MirrorRepository", "fs:CreateRepository", "fs:DeleteRepository"], repository_arn("*")),
        allow(["fs:AttachStorageNamespace"], namespace_arn("*")),
    )


def rule_admin() -> Document:
    """Who may create, change, run and delete replication rules, at any place; approving what they would delete is
    another's. No group has it: nobody gets these rights by an update."""
    verbs = ("Create", "Read", "Update", "Delete")
    return policy_document(
        "RuleAdmin",
        allow(["fs:ListReplicationRules"]),
        allow([f"fs:{verb}ReplicationRule" for verb in verbs], rule_arn("*")),
        allow(["fs:AttachStorageNamespace"], namespace_arn("*")),
    )


def all_access() -> Document:
    """Everything."""
    return policy_document("AllAccess", allow(_EVERYTHING))


def read_all() -> Document:
    """Look at everything in repositories and mirrors, change nothing."""
    return policy_document("ReadAll", allow(["fs:List*", "fs:Read*"]))


def operate() -> Document:
    """Run what others have configured: pause, resume, sync, validate, retry, repair; configure nothing."""
    return policy_document("Operators", allow(_OPERATE))


def viewer_of(*, mirror: str) -> Document:
    """See one mirror, and no other; with access keys of one's own. Invalid if that is no repository's name."""
    _check_name(mirror, "mirror")
    return policy_document(
        f"View-{mirror}",
        allow(["fs:ReadRepository"], repository_arn(mirror)),
        allow(_OWN_CREDENTIALS, _ONESELF),
    )


def operator_of(*, mirror: str) -> Document:
    """See and run one mirror, and answer the alerts that one sees; with access keys of one's own. Invalid if that is no
    repository's name."""
    _check_name(mirror, "mirror")
    return policy_document(
        f"Operate-{mirror}",
        allow(["fs:ReadRepository", "fs:OperateMirror"], repository_arn(mirror)),
        allow(["fs:AcknowledgeAlert"], alert_arn("*")),
        allow(_OWN_CREDENTIALS, _ONESELF),
    )


def own_credentials() -> Document:
    """Everybody's own access keys."""
    return policy_document("ManageOwnCredentials", allow(_OWN_CREDENTIALS, _ONESELF))


def every_one() -> tuple[Document, ...]:
    """The built-in policies as this version makes them."""
    return all_access(), read_all(), operate(), own_credentials(), mirror_admin(), replicator()


@services.administrator_kept()
def install() -> None:
    """Make the built-in policies and groups that are not there; leave alone what somebody has changed since."""
    for document in every_one():
        if not Policy.objects.filter(name=document["id"]).exists():
            services.policy_put(actor="system:install", document=document)
    _group(ADMINS, "May do everything", "AllAccess")
    _group(OPERATORS, "May see and run everything", "ReadAll", "Operators", "ManageOwnCredentials")
    _group(VIEWERS, "May see everything", "ReadAll", "ManageOwnCredentials")


def _group(name: str, description: str, *policies: str) -> None:
    if Group.objects.filter(name=name).exists():
        return
    group = services.group_create(actor="system:install", name=name, description=description)
    for policy in Policy.objects.filter(name__in=policies):
        services.policy_attach(actor="system:install", policy=policy, group=group)


def _check_name(repository: str, field: str) -> None:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{2,62}", repository):
        raise Invalid(
            f"'{repository[:80]}' is not a valid repository name", field=field, hint="Use the repository's name"
        )


def _check_namespace(namespace: str) -> None:
    if not re.fullmatch(r"[a-z0-9]+://[^\s*?${}]+", namespace):
        raise Invalid(
            f"'{namespace[:80]}' is not a storage namespace", field="namespace", hint="Use s3://bucket/prefix"
        )
