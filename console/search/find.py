"""One text, looked for among repositories, mirrors, commits, branches and the paths of what is missing.

Of each kind the first few are given, and whether there are more. Every look is bounded: ids by an index, names and
paths among the rows that were written last; `looked_at_all` says whether that was all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.db.models import Count, Max, Min, Q, QuerySet
from django.db.models.functions import Substr

from console import exports_summary
from core.errors import Invalid
from exports.models import Export
from mirrors.models import Blocker, Commit, Mirror, MirrorCommit, Repository, SourceBranch
from mirrors.models.querysets import MirrorQuerySet
from mirrors.queries.find_commit import LEAST_DIGITS, commits_beginning

T = TypeVar("T")
FEW = 20
LOOKED = 200_000
"""So many branches, and so many missing things, are gone through: the last ones written."""
LONGEST = 1024
"""As long as lakeFS lets a path be."""


@dataclass(frozen=True, slots=True)
class Hits(Generic[T]):
    """The first few of a kind, and whether there are more."""

    rows: Sequence[T]
    more: bool = False
    looked_at_all: bool = True


@dataclass(frozen=True, slots=True)
class CommitHit:
    """A commit, and the mirrors that know it."""

    commit: Commit
    mirrors: Sequence[str]


@dataclass(frozen=True, slots=True)
class BranchHit:
    """A branch of a source, and the mirrors of that."""

    branch: SourceBranch
    mirrors: Sequence[str]


@dataclass(frozen=True, slots=True)
class PathHit:
    """A mirror that misses things whose path is, or begins with, what is looked for; `example` is one of the paths."""

    mirror: Mirror
    things: int
    oldest: datetime
    example: str


@dataclass(frozen=True, slots=True)
class SearchResults:
    """Everything that fits a text."""

    repositories: Hits[Repository]
    mirrors: Hits[Mirror]
    commits: Hits[CommitHit]
    branches: Hits[BranchHit]
    paths: Hits[PathHit]
    exports: Hits[Export]

    @property
    def number(self) -> int:
        """How many are given, of all kinds."""
        kinds = (self.repositories, self.mirrors, self.commits, self.branches, self.paths, self.exports)
        return sum(len(hits.rows) for hits in kinds)

    def only_one(self, text: str) -> tuple[str, str] | None:
        """The mirror and the commit (or "") that this is the whole id of, if nothing else fits."""
        if self.number != 1:
            return None
        for mirror in self.mirrors.rows:
            return (mirror.name, "") if mirror.name == text else None
        for hit in self.commits.rows:
            whole = hit.commit.sha == text.lower() and len(hit.mirrors) == 1
            return (hit.mirrors[0], hit.commit.sha) if whole else None
        return None


def text_of(given: str) -> str:
    """What is looked for, without the blanks around it. Raises Invalid: nothing, or too much."""
    text = given.strip()
    if not text:
        raise Invalid("there is nothing to look for", field="q")
    if len(text) > LONGEST:
        raise Invalid(f"longer than {LONGEST:,} characters", field="q", hint="No name, id or path is as long as that")
    return text


def search(visible: MirrorQuerySet, text: str, user: Any) -> SearchResults:
    """What fits a text among these mirrors, their sources, and what those have; and the exports that `user` may see."""
    mirrors = visible.select_related("source").order_by("name")
    sources = Repository.objects.filter(pk__in=visible.order_by().values("source"))
    return SearchResults(
        repositories=_few(sources.filter(name__icontains=text).order_by("name", "region")),
        mirrors=_few(mirrors.filter(name__icontains=text)),
        commits=_commits(visible, text),
        branches=_branches(visible, text),
        paths=_paths(visible, text),
        exports=_few(exports_summary.find_exports(user, text)),
    )


def _few(rows: QuerySet[Any], *, looked_at_all: bool = True) -> Hits[Any]:
    some = list(rows[: FEW + 1])
    return Hits(some[:FEW], len(some) > FEW, looked_at_all)


def _first_key(rows: QuerySet[Any]) -> int:
    """The key from which on rows are gone through."""
    last: int = rows.order_by().aggregate(last=Max("pk"))["last"] or 0
    return max(0, last - LOOKED)


# --- commits and branches -------------------------------------------------------------------------------------------


def named_commits(visible: MirrorQuerySet, text: str) -> QuerySet[Commit]:
    """Commits of the mirrors' sources whose ids begin so, in the order of the index that finds them."""
    if len(text) < LEAST_DIGITS:
        return Commit.objects.none()
    commits = commits_beginning(visible.order_by().values("source"), text)
    return commits.select_related("repository").order_by("repository", "sha")


def _commits(visible: MirrorQuerySet, text: str) -> Hits[CommitHit]:
    some = _few(named_commits(visible, text))
    rows = MirrorCommit.objects.filter(commit__in=[commit.pk for commit in some.rows], mirror__in=visible.order_by())
    names = _names(rows.order_by("mirror__name").values_list("commit_id", "mirror__name"))
    return Hits([CommitHit(commit, names[commit.pk]) for commit in some.rows], some.more)


def _branches(visible: MirrorQuerySet, text: str) -> Hits[BranchHit]:
    """By a part of their name; one of exactly that name is found by an index, wherever it stands."""
    first = _first_key(SourceBranch.objects.all())
    part = Q(pk__gt=first, name__icontains=text)
    rows = SourceBranch.objects.filter(repository__in=visible.order_by().values("source"), gone_at=None)
    exact = rows.filter(name=text).values("pk")
    matching = (
        rows.filter(part | Q(pk__in=exact)).select_related("repository").order_by("name", "repository__name", "pk")
    )
    some = _few(matching, looked_at_all=not first or not SourceBranch.objects.filter(pk__lte=first).exists())
    sources = {branch.repository_id for branch in some.rows}
    mirrors = visible.filter(source__in=sources).order_by("name").values_list("source", "name")
    names = _names(mirrors)
    hits = [BranchHit(branch, names[branch.repository_id]) for branch in some.rows]
    return Hits(hits, some.more, some.looked_at_all)


def _names(pairs: Iterable[tuple[int, str]]) -> dict[int, list[str]]:
    names: dict[int, list[str]] = defaultdict(list)
    for key, name in pairs:
        names[key].append(name)
    return names


# --- paths ----------------------------------------------------------------------------------------------------------


def _paths(visible: MirrorQuerySet, text: str) -> Hits[PathHit]:
    """Mirrors that miss something with such a path: the longest known first."""
    first = _first_key(Blocker.objects.all())
    # Not startswith, which SQLite answers without regard to case.
    rows = Blocker.objects.needed().filter(pk__gt=first, mirror__in=visible.order_by().values("pk"))
    rows = rows.alias(beginning=Substr("path", 1, len(text))).filter(beginning=text).order_by().values("mirror_id")
    counted = rows.annotate(things=Count("pk"), oldest=Min("first_seen"), example=Min("path"))
    some = list(counted.order_by("oldest", "mirror_id")[: FEW + 1])
    mirrors = Mirror.objects.select_related("source").in_bulk([row["mirror_id"] for row in some])
    hits = [PathHit(mirrors[row.pop("mirror_id")], **row) for row in some[:FEW]]
    return Hits(hits, len(some) > FEW, not first or not Blocker.objects.filter(pk__lte=first).exists())
