"""Which commits does a mirror's namespace keep? All that the books need or might need, and all that any ref names now.

Commits are known by their metaranges here, for what these name is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from django.db.models import Q

from core.errors import LakeMirrorError, NoData, NotFound
from core.listing import all_pages
from core.ports import LakeFS
from core.sweeping import NothingGoes
from core.text.phrases import SHORT_ID
from db.chunks import chunks
from deployment.wiring import clients
from mirrors.models import Candidate, Commit, HeldMerge, Mirror, MoveIntent, Repository, SourceBranch, SourceTag
from mirrors.transitions.held_merges import ACKNOWLEDGED

_OPEN = Q(wanted=True) | Q(state=HeldMerge.State.HELD) | Q(state__in=ACKNOWLEDGED, seen_at=None)


@dataclass(frozen=True, slots=True)
class Kept:
    """Metaranges that are kept, and commits whose metaranges are, by their ids."""

    metaranges: frozenset[str]
    commits: frozenset[str]


def kept_in_books(mirror: Mirror) -> Kept:
    """By all that is written down: the commits that the mirror has a row for, be they recorded, waived or awaited; what
    was waived and is needed no more; candidates of the source's branches, selected or not; where refs stand, stood
    when they were put there, or are to be; merges that are held. Asks nobody."""
    source = mirror.source
    rows = mirror.commits.values_list("commit__metarange_id", flat=True)
    metaranges = set(rows.iterator())
    candidates = Candidate.objects.filter(branch__repository=source, branch__gone_at=None).order_by()
    metaranges.update(candidates.values_list("commit__metarange_id", flat=True).iterator())
    for unneeded in mirror.waivers.exclude(unneeded=None).values_list("unneeded", flat=True):
        for some in chunks(unneeded):
            metaranges.update(Commit.objects.filter(pk__in=some).values_list("metarange_id", flat=True))
    # The mirror may be a source itself.
    itself = Repository.objects.filter(region=mirror.region, name=mirror.name)
    metaranges.update(Commit.objects.filter(repository__in=itself).values_list("metarange_id", flat=True).iterator())
    return Kept(frozenset(metaranges - {""}), frozenset(_named(mirror, itself) - {""}))


def _named(mirror: Mirror, itself: Collection[Repository]) -> set[str]:
    source = mirror.source
    named: set[str] = set()
    rows = (
        SourceBranch.objects.filter(repository=source, gone_at=None).values_list("head", "unread_head"),
        SourceTag.objects.filter(repository=source, gone_at=None).values_list("commit_id", "unread_commit"),
        HeldMerge.objects.filter(_OPEN, repository=source).values_list("commit_id"),
        HeldMerge.objects.filter(_OPEN, repository__in=itself).values_list("commit_id"),
        mirror.branches.values_list("head", "placed", "certified"),
        mirror.tag_rows.values_list("commit_id", "stands_at"),
        MoveIntent.objects.filter(mirror=mirror).values_list("from_commit", "to_commit"),
    )
    for some in rows:
        named.update(sha for row in some for sha in row if sha)
    return named


def named_now(mirror: Mirror) -> set[str]:
    """The commits that branches and tags point to, at both sides. Raises what the installations answer."""
    source = mirror.source
    here, there = clients.lakefs(mirror.region), clients.lakefs(source.region)
    return {*_heads(here, mirror.name), *_heads(there, source.name)}


def _heads(lakefs: LakeFS, repository: str) -> Iterator[str]:
    for branch in all_pages(lambda after: lakefs.list_branches(repository, after=after)):
        yield branch.commit_id
    for tag in all_pages(lambda after: lakefs.list_tags(repository, after=after)):
        yield tag.commit_id


def metaranges_of(mirror: Mirror, commits: Collection[str]) -> dict[str, str]:
    """The metaranges of commits, by the books or as either side gives their records. Raises NothingGoes for one that
    nobody can read: nobody knows what it names."""
    known: dict[str, str] = {}
    for some in chunks(sorted(commits)):
        rows = Commit.objects.filter(repository=mirror.source_id, sha__in=some)
        known.update(rows.values_list("sha", "metarange_id"))
    for sha in sorted(set(commits) - known.keys()):
        known[sha] = _asked(mirror, sha)
    return known


def _asked(mirror: Mirror, sha: str) -> str:
    places = (mirror.source.region, mirror.source.name), (mirror.region, mirror.name)
    why = ""
    for region, repository in places:
        try:
            return clients.lakefs(region).get_commit(repository, sha).metarange_id
        except (NotFound, NoData):
            continue
        except LakeMirrorError as error:
            why = f": {error.message}"
    raise NothingGoes(f"nobody knows what the commit {sha[:SHORT_ID]} names, for it can't be read{why}")
