"""Which branches of its source does a mirror follow? Pure.

Globs as in Python's fnmatch: `*` any text, also with `/` in it, `?` one character, `[ab]` or `[a-z]` one of these,
`[!ab]` one of the others. They are case-sensitive and match the whole name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase, translate
from functools import cached_property

from core.errors import Invalid

ALL = ("*",)
MOST_GLOBS = 100
LONGEST_GLOB = 256


class OnUnselect(StrEnum):
    """What becomes of a branch that is there and is no longer selected."""

    KEEP = "keep"
    DELETE = "delete"


@dataclass(frozen=True)
class Selection:
    """Branches that a glob of `include` matches and none of `exclude`; the default branch whatever these say."""

    default_branch: str
    include: tuple[str, ...] = ALL
    exclude: tuple[str, ...] = ()

    @property
    def everything(self) -> bool:
        """Whether no branch can be left out."""
        return "*" in self.include and not self.exclude

    def __contains__(self, branch: str) -> bool:
        if branch == self.default_branch or self.everything:
            return True
        return bool(self._included.match(branch)) and not self._excluded.match(branch)

    def warnings(self, branches: Collection[str]) -> list[str]:
        """What of this somebody may have meant otherwise, given the branches that the source has now."""
        messages = [
            f"{field}: '{glob}' matches no branch now"
            for field, globs in (("include", self.include), ("exclude", self.exclude))
            for glob in globs
            if not self._matches_any(glob, branches)
        ]
        if self._excluded.match(self.default_branch):
            messages.append(f"exclude matches the default branch {self.default_branch}, which is mirrored all the same")
        return messages

    @staticmethod
    def _matches_any(glob: str, branches: Iterable[str]) -> bool:
        matcher = _matcher([glob])
        return glob == "*" or any(matcher.match(branch) for branch in branches)

    @cached_property
    def _included(self) -> re.Pattern[str]:
        return _matcher(self.include)

    @cached_property
    def _excluded(self) -> re.Pattern[str]:
        return _matcher(self.exclude)


def _matcher(globs: Sequence[str]) -> re.Pattern[str]:
    """Matches what one of the globs does; no glob matches nothing."""
    return re.compile("|".join(translate(glob) for glob in globs) if globs else r"(?!)")


def check_selection(selection: Selection) -> None:
    """Raises Invalid unless the globs are ones, not too many, and leave the default branch alone."""
    for field, globs in (("include", selection.include), ("exclude", selection.exclude)):
        if len(globs) > MOST_GLOBS:
            raise Invalid(f"'{field}' has more than {MOST_GLOBS} globs", field="branches")
        for glob in globs:
            _check_glob(field, glob)
    if selection.default_branch in selection.exclude:
        raise Invalid(
            f"the default branch '{selection.default_branch}' can't be excluded: lakeFS has no repository without it",
            field="branches",
        )


def check_priority(globs: Sequence[str]) -> None:
    """Raises Invalid unless these are globs, and not too many, which say whose heads go first."""
    if len(globs) > MOST_GLOBS:
        raise Invalid(f"'branch_priority' has more than {MOST_GLOBS} globs", field="branch_priority")
    for glob in globs:
        _check_glob("branch_priority", glob, of="branch_priority")


def rank_of(branch: str, default_branch: str, priority: Sequence[str]) -> int:
    """Which heads go first, the lowest: the default branch's, then those that the first of these globs matches, and so
    on; those that none does last."""
    if branch == default_branch:
        return 0
    matching = (at for at, glob in enumerate(priority, 1) if fnmatchcase(branch, glob))
    return next(matching, len(priority) + 1)


def _check_glob(field: str, glob: str, *, of: str = "branches") -> None:
    if not glob or len(glob) > LONGEST_GLOB or not glob.isprintable() or glob != glob.strip():
        raise Invalid(
            f"'{field}' holds {glob[:80]!r}, which is no glob of branch names",
            field=of,
            hint="Use names like main, with * for any text and ? for one character",
        )
