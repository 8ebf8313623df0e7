"""Histories that share no commit with what is known of a source: whose are they?

One may be that of a repository made anew under the name, of which another server's cache still knows the old one. So
it counts once a later look, after the cache's time, has found the same root. Commit ids are hashes: what does share a
commit is of the same repository, and waits for nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import datetime

from django.db.models import Q

from core.errors import LakeMirrorError
from core.mirroring import source_moves
from db import clock
from deployment.wiring import clients
from mirroring.sense.commit_spool import Spool, served_mirrors
from mirrors.models import Mirror, MirrorBranch, Repository

log = logging.getLogger("lakemirror.sense")

NEXT_LOOK_SECONDS = source_moves.CACHE_LASTS.total_seconds() + 1


def strangers(spool: Spool, heads: Collection[str], at: datetime) -> set[str]:
    """Those of the heads that wait for a later look than this one, begun at `at`; the roots that they wait for are left
    out, so that the later look has to read them again.

    Where a log broke off nobody can tell: the others don't wait for that. But a root that it led to is left out as
    well, for what is stored counts as known from then on.
    """
    known = set[str]()
    if not spool.repository.commits.exists():
        if not _is_anything_known(spool.repository, known := _known_heads(spool.repository, at)):
            return set()
        known |= _recorded(spool, spool.roots() & spool.unrelated(known)[0])
    unrelated, broken_off = spool.unrelated(known)
    new = _not_seen_before(spool, spool.roots() & unrelated, heads, at)
    waiting = new | (spool.above(new) & (unrelated | broken_off) if new else set())
    spool.leave_out(new)
    return waiting & set(heads)


def tell_strange(repository: Repository, heads: Collection[str]) -> str:
    """Why these wait; "" if there are none."""
    if not heads:
        return ""
    sentence = f"{min(heads)[:8]} shares no commit with the known history of {repository.name}"
    return f"{sentence}: a second check will show whether it is still the same repository"


def _not_seen_before(spool: Spool, roots: Collection[str], heads: Collection[str], at: datetime) -> set[str]:
    """Those of some unrelated roots that were not seen in the look before, or too lately; all are noted for the next.

    Each counts for itself: that a branch with a history of its own has waited says nothing of another repository's. One
    that this look did not come to, and a head or something read still needs, stays noted.
    """
    repository, seen = spool.repository, spool.read_now(roots)
    noted = repository.unrelated_roots
    needed = (spool.frontier() | set(heads)) & noted.keys() if noted else set()
    again = {root: at - datetime.fromisoformat(noted[root]) for root in seen if root in noted}
    old = {root for root, ago in again.items() if ago > source_moves.CACHE_LASTS}
    # Not `at`: a look may take long, and the cache lasts from now on.
    now = clock.now().isoformat()
    roots_now = {root: noted.get(root, now) for root in sorted(seen | needed)}
    if roots_now != noted or repository.unrelated_since is not None:
        Repository.objects.filter(pk=repository.pk).update(unrelated_roots=roots_now, unrelated_since=None)
    return set(roots) - old


def _is_anything_known(repository: Repository, heads: Collection[str]) -> bool:
    """Whether a source of which no commit was read was seen before at all: else nothing can be a stranger's."""
    return bool(heads or repository.unrelated_roots) or repository.branches.exclude(unread_head="").exists()


def _known_heads(repository: Repository, at: datetime) -> set[str]:
    """Of a source of which no commit was read: heads that could not be read, and after the books were made again from
    the destination what its branches show. An unread head of a later look than the first counts once the cache's time
    has passed: another repository would be known for one by now. While a root waits, it may be a stranger's."""
    shown = MirrorBranch.objects.filter(mirror__source=repository, stray=False).exclude(head="")
    known = set(shown.values_list("head", flat=True))
    if not repository.unrelated_roots:
        old = Q(unread_head_at=None) | Q(unread_head_at__lt=at - source_moves.CACHE_LASTS)
        unread = repository.branches.exclude(unread_head="").filter(old)
        known.update(unread.values_list("unread_head", flat=True))
    return known


def _recorded(spool: Spool, roots: Collection[str]) -> set[str]:
    """Those of the roots, if they were read now, that a mirror of the source has at its destination."""
    read, mirrors = spool.read_now(roots), list(served_mirrors(spool.repository))
    return {root for root in read if any(_has_record(mirror, root) for mirror in mirrors)}


def _has_record(mirror: Mirror, sha: str) -> bool:
    """Whether a mirror's destination has a commit's record. One that does not answer proves nothing."""
    try:
        return bool(clients.lakefs(mirror.region).get_commit(mirror.name, sha))
    except LakeMirrorError as error:
        log.warning("whether %s has %s is not known: %s", mirror.name, sha[:8], error)
        return False
