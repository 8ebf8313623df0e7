"""Which actions there are, and what is told of a policy that names others, or on resources that they never have.

Names of lakeFS's own actions are those of its reference of access control.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from core.access.policies import ALL, Effect, Policy, resource_match, wildcard_match

_FS = """
ReadRepository CreateRepository UpdateRepository AttachStorageNamespace DeleteRepository ListRepositories ReadObject
WriteObject DeleteObject ListObjects CreateCommit CreateMetaRange ReadCommit ListCommits CreateBranch DeleteBranch
ReadBranch RevertBranch ListBranches CreateTag DeleteTag ReadTag ListTags ReadConfig ImportFromStorage ImportCancel
MirrorRepository
"""
_AUTH = """
ReadUser CreateUser DeleteUser ListUsers ReadGroup CreateGroup DeleteGroup ListGroups AddGroupMember RemoveGroupMember
ReadPolicy CreatePolicy UpdatePolicy DeletePolicy ListPolicies AttachPolicy DetachPolicy ReadCredentials
CreateCredentials DeleteCredentials ListCredentials CreateUserExternalPrincipal DeleteUserExternalPrincipal
ReadExternalPrincipal
"""
_OTHERS = (
    "ci:ReadAction",
    "retention:PrepareGarbageCollectionCommits",
    "retention:PrepareGarbageCollectionUncommitted",
    "retention:GetGarbageCollectionRules",
    "retention:SetGarbageCollectionRules",
    "branches:GetBranchProtectionRules",
    "branches:SetBranchProtectionRules",
    "pr:ReadPullRequest",
    "pr:WritePullRequest",
    "pr:ListPullRequests",
)
OF_LAKEFS = frozenset({*(f"fs:{name}" for name in _FS.split()), *(f"auth:{name}" for name in _AUTH.split()), *_OTHERS})
"""Actions that lakeFS asks for; LakeMirror asks for some of them too."""


def unknown_actions(policy: Policy, asked: Collection[str]) -> Iterator[str]:
    """Of each action that neither lakeFS nor LakeMirror (which asks for `asked`) knows: a sentence, with what may have
    been meant."""
    known = OF_LAKEFS | frozenset(asked)
    for number, statement in enumerate(policy.statements, start=1):
        for action in statement.actions:
            if not any(wildcard_match(action, name) for name in known):
                close = difflib.get_close_matches(action, sorted(known), n=1)
                meant = f" Did you mean {close[0]}?" if close else ""
                yield f"Statement {number}: neither LakeMirror nor lakeFS has an action {action}.{meant}"


def pointless_resources(policy: Policy, resources: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Of each action that a policy allows only where it is never asked for: a sentence. `resources` are the shapes of
    what each action is asked for on, like `arn:lakefs:fs:::repository/{source}`."""
    given: dict[str, list[tuple[int, str]]] = {}
    for number, statement in enumerate(policy.statements, start=1):
        for action in statement.actions if statement.effect is Effect.ALLOW else ():
            given.setdefault(action, []).extend((number, text) for text in statement.resources)
    for action, places in given.items():
        shapes = [_example(shape) for shape in resources.get(action, ())]
        if shapes and not any(_meets(text, shape) for _, text in places for shape in shapes):
            number, text = places[0]
            asked = _on(resources[action])
            yield f"Statement {number}: {action} is only asked for on {asked}: on {text} it allows nothing."


def _on(shapes: Iterable[str]) -> str:
    return " or ".join(shape.replace("{", "<").replace("}", ">") for shape in dict.fromkeys(shapes))


def _example(shape: str) -> str:
    """A shape with its blanks left open."""
    head, *rest = shape.split("{")
    return head + "".join("*" + part.partition("}")[2] for part in rest)


def _meets(pattern: str, shape: str) -> bool:
    """Whether a statement's resource may cover something of a shape. Where both have wildcards only what stands before
    them is compared."""
    if pattern == ALL or shape == ALL:
        return pattern == ALL
    if not set("*?$") & set(pattern):
        return resource_match(shape, pattern) and pattern.count("/") >= shape.count("/")
    first = min(pattern.find(mark) for mark in "*?$" if mark in pattern)
    before, fixed = pattern[:first], shape.partition("*")[0]
    return before.startswith(fixed) or fixed.startswith(before)
