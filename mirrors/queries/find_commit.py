"""A commit by its id, or by as much of it as is needed to tell it from others. And a branch by its name."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from django.db.models import QuerySet

from core.errors import Conflict, Invalid, NotFound
from mirrors.models import Commit, Mirror, SourceBranch

LEAST_DIGITS = 6
_HEX = re.compile(r"[0-9a-f]+")
_NAMED = 3


def find_commit(mirror: Mirror, given: str) -> Commit:
    """The one commit at a mirror whose id begins so. Raises NotFound, Invalid (too short), Conflict (several do)."""
    commits = commits_beginning([mirror.source_id], given).filter(at_mirrors__mirror=mirror)
    rows = list(commits.order_by("sha")[: _NAMED + 1])
    if not rows:
        raise NotFound(f"there is no known commit '{given[:80]}' at '{mirror.name}'")
    expect_one(given, [row.sha for row in rows])
    return rows[0]


def find_branch(mirror: Mirror, name: str) -> SourceBranch:
    """A branch that a mirror's source has now. Raises NotFound."""
    branch = mirror.source.branches.filter(name=name, gone_at=None).first()
    if branch is None:
        raise NotFound(f"'{mirror.source.name}' has no branch '{name[:80]}'")
    return branch


def commits_beginning(repositories: Collection[int] | QuerySet[Any], given: str) -> QuerySet[Commit]:
    """Commits of some sources whose ids begin so, found by their index. Raises Invalid when that is too short."""
    prefix = given.lower()
    if len(prefix) < LEAST_DIGITS and _HEX.fullmatch(prefix):
        hint = f"Give the first {LEAST_DIGITS} digits or more"
        raise Invalid(f"'{given}' is too short for a commit id", field="commit", hint=hint)
    if not _HEX.fullmatch(prefix):
        return Commit.objects.none()
    return Commit.objects.filter(repository__in=repositories, sha__gte=prefix, sha__lt=f"{prefix}g")


def expect_one(given: str, shas: Collection[str]) -> None:
    """Raises Conflict when several ids were found, naming some of them."""
    named = sorted(set(shas))
    if len(named) > 1:
        some = ", ".join(sha[:16] for sha in named[:_NAMED]) + (", …" if len(named) > _NAMED else "")
        raise Conflict(f"several commits begin with '{given[:64]}': {some}", field="commit", hint="Give more digits")
