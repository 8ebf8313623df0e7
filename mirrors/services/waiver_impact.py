"""What would follow if a commit, or an object, were waived: which branches move on, what readers would not get."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db.models import Count, Sum

from mirrors.models import Commit, Mirror, MirrorCommit
from mirrors.queries.missing import TROUBLED, Commits, own_blockers
from mirrors.services.backlog import Held, Lacking

EXAMPLES = 10


@dataclass(frozen=True, slots=True)
class Waiting:
    """A branch that waits for the commit. `others` are the commits in trouble that it waits for besides."""

    branch: str
    head: str
    others: Sequence[str]
    more: bool

    @property
    def moves_on(self) -> bool:
        """Whether nothing else that is known keeps it back."""
        return not self.others


@dataclass(frozen=True, slots=True)
class Impact:
    """What a reader of the commit would not get (`things`, some `examples`), and the branches that wait for it.

    `bytes` is None where nobody knows. `ancestors` of it are in trouble too, and are not waived with it. `gone`: it is
    gone at both sides, so nothing waits for it.
    """

    things: int
    bytes: int | None
    examples: Sequence[str]
    ancestors: Sequence[str]
    waiting: Sequence[Waiting]
    gone: bool


def waiver_impact(mirror: Mirror, commit: Commit) -> Impact:
    """So many queries however many branches there are."""
    own = own_blockers(mirror, commit.sha)
    totals = own.aggregate(number=Count("pk"), bytes=Sum("size"))
    named = own.order_by("first_seen", "pk").values_list("path", "address")[:EXAMPLES]
    live = mirror.source.branches.filter(gone_at=None).order_by("name").values_list("name", "head")
    heads = {name: head for name, head in live if name in mirror.selection}
    keys = [(mirror.pk, sha) for sha in {commit.sha, *heads.values()}]
    known = Commits([], keys)
    needed = {sha: [facts.commit_id for facts in known.needed_by((mirror.pk, sha))] for _, sha in keys}
    return Impact(
        things=totals["number"],
        bytes=totals["bytes"],
        examples=[path or address for path, address in named],
        ancestors=[sha for sha in needed[commit.sha] if sha != commit.sha],
        waiting=[
            _waiting(name, head, needed[head], commit.sha) for name, head in heads.items() if commit.sha in needed[head]
        ],
        gone=mirror.commits.filter(commit=commit, data=MirrorCommit.Data.GONE).exists(),
    )


@dataclass(frozen=True, slots=True)
class ObjectImpact:
    """The commits that lack an object, the newest first (`more`: beyond the last 5,000), and the branches of which the
    head at the source is one of them: these stay where they are until it arrives or the source moves on."""

    commits: Sequence[Held]
    more: bool
    heads: Sequence[str]


def object_impact(mirror: Mirror, holders: Collection[str]) -> ObjectImpact:
    """What waiving an object that these ranges need would mean."""
    lacking = Lacking(mirror)
    commits = lacking.commits(holders)
    shas = {held.commit for held in commits}
    live = mirror.source.branches.filter(gone_at=None).order_by("name").values_list("name", "head")
    heads = [name for name, head in live if head in shas and name in mirror.selection]
    return ObjectImpact(commits, lacking.more, heads)


def _waiting(branch: str, head: str, needed: Sequence[str], sha: str) -> Waiting:
    """No more than so many commits in trouble are told of for a branch: with so many there may be others."""
    return Waiting(branch, head, [other for other in needed if other != sha], len(needed) >= TROUBLED)
