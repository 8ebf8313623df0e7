"""Some commits first: what somebody needs is copied and checked before all else, whatever waits longer.

Asking marks one row. The next round of *copy* or *validate* marks what that commit needs, and takes such rows first,
parents before children as ever. A mark goes when there is nothing left to do for its commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from audit.verbs import Verb
from core.errors import NotFound
from core.mirroring.facts import History
from db.chunks import chunks
from jobs import duties
from jobs.lease import Lease
from mirrors.models import Mirror, MirrorCommit, MirrorDuty
from mirrors.queries.ancestors import windows
from mirrors.queries.proof_facts import row_of
from mirrors.services.rights import require_operation
from mirrors.transitions.validity import locked_mirror
from rbac import services as rbac

Urgency = MirrorCommit.Urgency
_OPEN = ("unknown", "waiting")


def mirror_prioritise(*, actor: Any, mirror: Mirror, commit: str = "", branch: str = "") -> MirrorCommit:
    """Have a commit, or the head that a branch has at the source, copied and checked first; gives it as it stands.

    Raises Denied and NotFound (no such branch, or nothing is known of the commit at this mirror).
    """
    right = require_operation(actor, mirror)
    sha = commit or _head(mirror, branch)
    row = row_of(mirror, sha)
    if row is None:
        raise NotFound(f"there is no known commit '{sha[:80]}' at '{mirror.name}'")
    if not mirror.commits.settled().filter(pk=row.pk).exists():
        mirror.commits.filter(pk=row.pk).update(urgency=Urgency.ASKED)
        for kind in (MirrorDuty.COPY_RECORDS, MirrorDuty.VALIDATE):
            duties.wake(kind, mirror.pk)
    after = {"prioritise": mirror.name, "branch": branch, "commit": sha}
    rbac.audit(actor=actor, right=right, verb=Verb.PRIORITISE, subject=mirror.audit_name, after=after)
    return row


def _head(mirror: Mirror, branch: str) -> str:
    head = mirror.source.branches.filter(name=branch, gone_at=None).values_list("head", flat=True).first()
    if head is None or branch not in mirror.selection:
        raise NotFound(f"'{mirror.name}' follows no branch '{branch[:80]}'")
    return head


# --- in the rounds ----------------------------------------------------------------------------------------------------


def mark_needed(mirror: Mirror, lease: Lease) -> None:
    """Mark what the commits need that somebody asked for since the last round."""
    wanted = dict(mirror.commits.asked_for().values_list("commit_id", "commit__sha"))
    if not wanted:
        return
    needed = {*wanted, *_needed(mirror, set(wanted.values()), lease)}
    with locked_mirror(mirror, lease, settings=False):
        for some in chunks(sorted(needed)):
            mirror.commits.filter(commit_id__in=some).update(urgency=Urgency.NEEDED)


def unmark_settled(mirror: Mirror) -> None:
    """Those for which nothing is left to do are urgent no more. Writes only if there are any."""
    settled = mirror.commits.urgent().settled()
    if settled.exists():
        settled.update(urgency=Urgency.NONE)


def ask_again(mirror: Mirror) -> None:
    """What the urgent ones need is to be found out anew: all records are to be copied once more."""
    mirror.commits.urgent().update(urgency=Urgency.ASKED)


def _needed(mirror: Mirror, targets: set[str], lease: Lease) -> Iterator[int]:
    """Keys of the commits on which others wait to be promoted: not copied, or not judged as complete.

    Below one whose history is in order there are none. With the history `head`, records are all that is needed of
    ancestors.
    """
    wanted = set(targets)
    rows = mirror.commits.values_list("commit_id", "commit__sha", "commit__parents", "record", "data", "history")
    for lines in windows(mirror.source, wanted, rows, "commit_id"):
        lease.renew()
        for key, sha, parents, record, data, history in lines:
            if sha not in wanted:
                continue
            wanted.discard(sha)
            wanted.update(() if history else parents)
            if record == MirrorCommit.Record.PENDING or (data in _OPEN and mirror.history == History.FULL):
                yield key
