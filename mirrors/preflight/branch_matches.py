"""Which of a source's branches would globs choose? Asked while somebody types them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.access.policies import repository_arn
from core.errors import LakeMirrorError, NotFound
from core.mirroring.branch_selection import ALL, Selection, check_selection
from installations.probes import ask, is_name
from mirrors.models import Repository
from mirrors.preflight.questions import Plan, first_of_source
from rbac import services as rbac


@dataclass(frozen=True, slots=True)
class Matches:
    """Names of branches, and what of the globs somebody may have meant otherwise."""

    chosen: list[str]
    left_out: list[str]
    warnings: list[str]

    @property
    def number(self) -> int:
        """Of all branches."""
        return len(self.chosen) + len(self.left_out)


def branch_matches(*, actor: Any, plan: Plan) -> Matches:
    """Raises Denied, Invalid (a glob is none), NotFound (no such source) and whatever keeps it from being asked."""
    rbac.require(actor, ("fs:MirrorRepository", repository_arn(plan.source_repository)))
    if not is_name(plan.source_repository):
        raise NotFound(f"there is no repository '{plan.source_repository[:80]}' in {plan.source_region}")
    answers = ask(first_of_source(plan))
    for answer in answers.values():
        if isinstance(answer, LakeMirrorError):
            raise answer
    selection = Selection(answers["repository"].default_branch, plan.include, plan.exclude)
    return _matches(selection, list(answers["branches"]))


def known_matches(source: Repository, include: Sequence[str], exclude: Sequence[str]) -> Matches:
    """The same of the branches that the source had when it was last looked at. Raises Invalid."""
    names = list(source.branches.filter(gone_at=None).order_by("name").values_list("name", flat=True))
    return _matches(Selection(source.default_branch, tuple(include) or ALL, tuple(exclude)), names)


def _matches(selection: Selection, names: Sequence[str]) -> Matches:
    check_selection(selection)
    chosen = [name for name in names if name in selection]
    left_out = [name for name in names if name not in selection]
    return Matches(chosen, left_out, selection.warnings(names))
