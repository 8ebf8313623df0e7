"""Calls that show which rights our key has at a lakeFS, and change nothing.

lakeFS asks for the right before it looks: who lacks it is told so (403) even of what isn't there. So a call for
something that can't be there (a branch of a random name, the commit fff…f, a record whose id is not its own) is
refused in any case, and the way it is refused shows the right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from core.installations.replication_rights import tried
from core.ports import LakeFS
from core.types import Commit

NOWHERE = "f" * 64
_NO_RECORD = Commit(NOWHERE, (), "lakemirror", "no record", 0, "", {}, 1, 1)


@dataclass(frozen=True, slots=True)
class Target:
    """What is asked for; at the destination a branch and a commit that nobody has."""

    repository: str
    branch: str
    commit: str = NOWHERE


def target_at_destination(name: str) -> Target:
    """Nothing that is there, whatever is there."""
    return Target(name, f"lakemirror-probe-{uuid4().hex}")


Try = Callable[[LakeFS, Target], Any]

_TRIES: Mapping[str, Try] = {
    "fs:ReadRepository": lambda lakefs, it: lakefs.get_repository(it.repository),
    "fs:ListBranches": lambda lakefs, it: lakefs.list_branches(it.repository, amount=1),
    "fs:ReadBranch": lambda lakefs, it: lakefs.get_branch(it.repository, it.branch),
    "fs:ReadCommit": lambda lakefs, it: lakefs.get_commit(it.repository, it.commit),
    "fs:ListCommits": lambda lakefs, it: lakefs.log_commits(it.repository, it.commit, amount=1),
    "retention:GetGarbageCollectionRules": lambda lakefs, it: lakefs.gc_rules(it.repository),
    "fs:ListRepositories": lambda lakefs, it: lakefs.list_repositories(amount=1),
    "fs:ListObjects": lambda lakefs, it: lakefs.has_uncommitted(it.repository, it.branch),
    "fs:CreateCommit": lambda lakefs, it: lakefs.put_commit_record(it.repository, _NO_RECORD),
    "fs:CreateBranch": lambda lakefs, it: lakefs.create_branch(it.repository, it.branch, it.commit),
    "fs:RevertBranch": lambda lakefs, it: lakefs.hard_reset_branch(it.repository, it.branch, it.commit),
    "fs:DeleteBranch": lambda lakefs, it: lakefs.delete_branch(it.repository, it.branch),
    "fs:ListTags": lambda lakefs, it: lakefs.list_tags(it.repository, amount=1),
    "fs:ReadTag": lambda lakefs, it: lakefs.get_tag(it.repository, it.branch),
    "fs:CreateTag": lambda lakefs, it: lakefs.create_tag(it.repository, it.branch, it.commit),
    "fs:DeleteTag": lambda lakefs, it: lakefs.delete_tag(it.repository, it.branch),
}


def only_reads(action: str) -> bool:
    """Whether the call could be made of anything that is there, too."""
    return action.startswith(("fs:List", "fs:Read", "retention:Get"))


def tries_of(side: str, *, tags: bool, follows_gc: bool = False) -> Mapping[str, Try]:
    """By action, what a mirror needs of its source or its destination, as far as it can be tried."""
    return {action: _TRIES[action] for action in tried(side, tags=tags, follows_gc=follows_gc)}


def is_of_branches(action: str) -> bool:
    """Whether lakeFS asks for the right on repository/{id}/branch/{ref}, or the tag's, and not on the repository."""
    return action.endswith("Branch") or action.endswith("Tag")
