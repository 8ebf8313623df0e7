"""One text, looked for among regions, repositories, mirrors, commits, branches, exports, replication rules, users and
the paths of what is missing.

Of each kind the first few are given, and whether there are more. Every look is bounded: ids by an index, names and
paths among the rows that were written last; `looked_at_all` says whether that was all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.db.models import Count, Max, Min, Q, QuerySet, Value
from django.db.models.functions import StrIndex

from console import exports_summary
from core.errors import Invalid
from deployment import config
from exports.models import Export
from installations.services import LIST as LIST_INSTALLATIONS
from mirrors.models import Blocker, Commit, Mirror, MirrorCommit, Repository, SourceBranch
from mirrors.models.querysets import MirrorQuerySet
from mirrors.queries.find_commit import LEAST_DIGITS, commits_beginning
from rbac import services as rbac
from rbac.models import User
from replication.models import Rule
from replication.queries.find_rules import rules_holding
from replication.services.rights import rules_read_by

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
    by: str = "id"
    """Where the text was found: in its `id`, its `metarange` or its `message`."""


@dataclass(frozen=True, slots=True)
class BranchHit:
    """A branch of a source, and the mirrors of that."""

    branch: SourceBranch
    mirrors: Sequence[str]


@dataclass(frozen=True, slots=True)
class PathHit:
    """A mirror that misses files whose path holds what is looked for; `example` is the first of the paths."""

    mirror: Mirror
    things: int
    oldest: datetime
    example: str
    prefix: str
    """What the backlog can be filtered by: the beginning of all of these paths, or ""."""


@dataclass(frozen=True, slots=True)
class SearchResults:
    """Everything that fits a text."""

    repositories: Hits[Repository]
    mirrors: Hits[Mirror]
    commits: Hits[CommitHit]
    branches: Hits[BranchHit]
    paths: Hits[PathHit]
    exports: Hits[Export]
    rules: Hits[Rule]
    regions: Hits[str]
    users: Hits[User]

    @property
    def number(self) -> int:
        """How many are given, of all kinds."""
        kinds = (self.repositories, self.mirrors, self.commits, self.branches, self.paths, self.exports, self.regions)
        kinds = (*kinds, self.rules, self.users)
        return sum(len(hits.rows) for hits in kinds)

    def only_one(self, text: str) -> tuple[str, str] | None:
        """The mirror, if this is the whole name of one, or the commit, if this is a whole id, and nothing else fits:
        (name, "") or ("", id)."""
        if self.number != 1:
            return None
        for mirror in self.mirrors.rows:
            return (mirror.name, "") if mirror.name == text else None
        for hit in self.commits.rows:
            return ("", hit.commit.sha) if hit.commit.sha == text.lower() else None
        return None


def text_of(given: str) -> str:
    """What is looked for, without the blanks around it. Raises Invalid: nothing, or too much."""
    text = given.strip()
    if not text:
        raise Invalid("enter something to search for", field="q")
    if len(text) > LONGEST:
        raise Invalid(f"longer than {LONGEST:,} characters", field="q", hint="Names, ids and paths are shorter")
    return text


def search(visible: MirrorQuerySet, text: str, user: Any) -> SearchResults:
    """What fits a text among these mirrors, their sources, and what those have; and the exports and rules that `user`
    may see."""
    mirrors = visible.select_related("source").order_by("name")
    sources = Repository.objects.filter(pk__in=visible.order_by().values("source"))
    return SearchResults(
        repositories=_few(sources.filter(name__icontains=text).order_by("name", "region")),
        mirrors=_few(mirrors.filter(name__icontains=text)),
        commits=_commits(visible, text),
        branches=_branches(visible, text),
        paths=_paths(visible, text),
        exports=_few(exports_summary.find_exports(user, text)),
        rules=_few(rules_holding(text).filter(pk__in=rules_read_by(user)).order_by("name")),
        regions=_regions(user, text),
        users=_few(_users(user, text)),
    )


def _regions(user: Any, text: str) -> Hits[str]:
    """Installations by a part of their region's name, for who may list them."""
    if not rbac.allowed(user, LIST_INSTALLATIONS, "*"):
        return Hits([])
    found = sorted(region for region in config.current().regions if text.lower() in region.lower())
    return Hits(found[:FEW], len(found) > FEW)


def _users(user: Any, text: str) -> QuerySet[User]:
    """By a part of their name, for who may list them."""
    may = rbac.allowed(user, "auth:ListUsers", "*")
    return User.objects.filter(username__icontains=text).order_by("username") if may else User.objects.none()


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
    """By their id, else by the id of their metarange, else by what stands in their message."""
    some, by = _few(named_commits(visible, text)), "id"
    if not some.rows:
        some, by = _by_metarange_or_message(visible, text)
    rows = MirrorCommit.objects.filter(commit__in=[commit.pk for commit in some.rows], mirror__in=visible.order_by())
    names = _names(rows.order_by("mirror__name").values_list("commit_id", "mirror__name"))
    hits = [CommitHit(commit, names[commit.pk], by) for commit in some.rows]
    return Hits(hits, some.more, some.looked_at_all)


def _by_metarange_or_message(visible: MirrorQuerySet, text: str) -> tuple[Hits[Commit], str]:
    """Among the commits that were seen last: no index leads there."""
    first = _first_key(Commit.objects.all())
    whole = not first or not Commit.objects.filter(pk__lte=first).exists()
    rows = Commit.objects.filter(pk__gt=first, repository__in=visible.order_by().values("source"))
    rows = rows.select_related("repository").order_by("-pk")
    if len(text) >= LEAST_DIGITS:
        by_metarange = _few(rows.filter(metarange_id__startswith=text.lower()), looked_at_all=whole)
        if by_metarange.rows:
            return by_metarange, "metarange"
    return _few(rows.filter(message__icontains=text), looked_at_all=whole), "message"


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
    """Mirrors that miss something whose path holds the text, as it is written: the longest known first."""
    first = _first_key(Blocker.objects.all())
    # Not contains, which SQLite answers without regard to case.
    rows = Blocker.objects.needed().filter(pk__gt=first, mirror__in=visible.order_by().values("pk"))
    rows = rows.alias(at=StrIndex("path", Value(text))).filter(at__gt=0).order_by().values("mirror_id")
    counted = rows.annotate(things=Count("pk"), oldest=Min("first_seen"), example=Min("path"), deepest=Max("at"))
    some = list(counted.order_by("oldest", "mirror_id")[: FEW + 1])
    mirrors = Mirror.objects.select_related("source").in_bulk([row["mirror_id"] for row in some])
    hits = [_path_hit(mirrors[row["mirror_id"]], text, row) for row in some[:FEW]]
    return Hits(hits, len(some) > FEW, not first or not Blocker.objects.filter(pk__lte=first).exists())


def _path_hit(mirror: Mirror, text: str, row: Mapping[str, Any]) -> PathHit:
    prefix = text if row["deepest"] == 1 else row["example"] if row["things"] == 1 else ""
    return PathHit(mirror, row["things"], row["oldest"], row["example"], prefix)
