"""Waivers: an operator accepts that commits are unreadable at a mirror, so that what descends from them may be shown.

For old history that was never replicated. A waived commit serves its descendants as one that is gone at both sides
does, and is no candidate itself, whatever arrives of it. Its record has to be accepted all the same.

A waived object does the same for every commit that holds it, now or later, while it can't be read at the mirror: it
counts as if it were gone at both sides. Once it arrives, these commits are complete like others. If something else
arrives in its place the waiver does not cover that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction

from audit.verbs import Verb
from core.access.policies import repository_arn
from core.errors import Conflict, Invalid, NotFound
from core.mirroring.facts import CommitFacts
from core.mirroring.object_check import WAIVABLE, address_hash
from db import clock
from jobs import duties
from mirrors.models import Blocker, Mirror, MirrorCommit, MirrorDuty, WaivedObject, Waiver
from mirrors.models.waived import is_full, waived_addresses
from mirrors.transitions.ancestry import reset_ancestry
from mirrors.transitions.waived_objects import forget_withdrawn, settle_waived
from rbac import services as rbac

MOST_COMMITS = 1000


def waiver_give(
    *, actor: Any, mirror: Mirror, commits: Sequence[str] = (), objects: Sequence[str] = (), reason: str
) -> Waiver:
    """Accept that these commits are unreadable at the mirror, or that these objects, by their addresses, are missing.

    Raises Denied, Invalid (none of both, both or too many, no reason), NotFound (nothing is known of one, or no commit
    lacks it) and Conflict: a commit is the head of a branch, which readers see or are to see; an object is there, with
    other content; or it is waived already.
    """
    right = ("fs:MirrorRepository", repository_arn(mirror.source.name))
    rbac.require(actor, right)
    shas, addresses = list(dict.fromkeys(commits)), list(dict.fromkeys(objects))
    _check(shas, addresses, reason)
    with transaction.atomic():
        Mirror.objects.select_for_update(no_key=True).filter(pk=mirror.pk).first()
        rows = _rows(mirror, shas)
        _check_heads(mirror, shas)
        forget_withdrawn(mirror)
        lacking = [row for address in addresses for row in waivable_objects(mirror, address)]
        given_by = actor if isinstance(actor, str) else actor.username
        waiver = Waiver.objects.create(mirror=mirror, reason=reason.strip(), given_by=given_by, given_at=clock.now())
        mirror.commits.filter(pk__in=[row.pk for row in rows]).update(waiver=waiver)
        WaivedObject.objects.bulk_create(_waived(waiver, row) for row in lacking)
        if lacking:
            settle_waived(mirror)
        duties.wake(MirrorDuty.VALIDATE, mirror.pk)
        after = {"waiver": waiver.pk, "mirror": mirror.name} | _told(shas, waiver)
        rbac.audit(
            actor=actor, right=right, verb=Verb.WAIVE, subject=mirror.audit_name, after=after, reason=waiver.reason
        )
    return waiver


def waiver_withdraw(*, actor: Any, waiver: Waiver) -> None:
    """What the waiver accepted counts again. No branch is moved back; what is not promoted yet waits for it."""
    mirror = waiver.mirror
    right = ("fs:MirrorRepository", repository_arn(mirror.source.name))
    rbac.require(actor, right)
    with transaction.atomic():
        Mirror.objects.select_for_update(no_key=True).filter(pk=mirror.pk).first()
        rows = list(waiver.commits.values_list("commit_id", "commit__sha"))
        reset_ancestry(mirror, [commit_id for commit_id, _ in rows])
        before = {"waiver": waiver.pk, "mirror": mirror.name} | _told([sha for _, sha in rows], waiver)
        reason = waiver.reason
        waiver.delete()
        settle_waived(mirror)
        duties.wake(MirrorDuty.VALIDATE, mirror.pk)
        rbac.audit(
            actor=actor, right=right, verb=Verb.WITHDRAW_WAIVER, subject=mirror.audit_name, before=before, reason=reason
        )


def find_waiver(mirror: Mirror, number: int) -> Waiver:
    """The waiver of a mirror by its number. Raises NotFound."""
    waiver = mirror.waivers.select_related("mirror__source").filter(pk=number).first() if number < 10**18 else None
    if waiver is None:
        raise NotFound(f"there is no waiver {str(number)[:40]} at '{mirror.name}'")
    return waiver


def check_waivable(mirror: Mirror, sha: str) -> None:
    """Raises what giving a waiver for the commit would: NotFound or Conflict."""
    _rows(mirror, [sha])
    _check_heads(mirror, [sha])


def is_waivable(mirror: Mirror, commit: CommitFacts) -> bool:
    """Whether a commit is one that somebody may want to waive: it lacks something, and no branch points to it."""
    if commit.waived or commit.data not in ("waiting", "gone"):
        return False
    try:
        _check_heads(mirror, [commit.commit_id])
    except Conflict:
        return False
    return True


def waivable_objects(mirror: Mirror, address: str) -> list[Blocker]:
    """The first row of an object that commits lack; two where an address below the namespace looks like a URI.

    Raises what waiving it would: NotFound or Conflict.
    """
    rows = list(mirror.blockers.filter(kind=Blocker.Kind.OBJECT, address_hash=address_hash(address)).order_by("pk"))
    if not rows:
        raise NotFound(f"no commit at '{mirror.name}' lacks an object at {address[:200]}")
    wrong = next((row for row in rows if row.reason not in WAIVABLE), None)
    if wrong is not None:
        other = "is there with other content than commits say: copy it again, or waive the commits that hold it"
        raise Conflict(f"{wrong.path or wrong.address} {other}", field="objects")
    known = waived_addresses(mirror).known
    if any((row.address_hash, is_full(row)) in known for row in rows):
        raise Conflict(f"{rows[0].path or rows[0].address} is waived already", field="objects")
    return list({is_full(row): row for row in reversed(rows)}.values())


def _waived(waiver: Waiver, row: Blocker) -> WaivedObject:
    return WaivedObject(
        waiver=waiver,
        mirror=waiver.mirror,
        address=row.address,
        address_hash=row.address_hash,
        full=is_full(row),
        path=row.path,
    )


def _told(commits: Sequence[str], waiver: Waiver) -> dict[str, Any]:
    """What the audit trail says of it."""
    objects = [{"path": one.path, "address": one.address} for one in waiver.objects_waived.order_by("pk")]
    return {"commits": list(commits)} | ({"objects": objects} if objects else {})


def _check(commits: Sequence[str], objects: Sequence[str], reason: str) -> None:
    if commits and objects:
        raise Invalid("give commits or objects, not both: each is withdrawn by itself", field="objects")
    if not 0 < len(commits) + len(objects) <= MOST_COMMITS:
        raise Invalid(f"give 1 to {MOST_COMMITS:,} commits, or as many objects", field="commits")
    if not reason.strip():
        raise Invalid("give a reason why they may stay unreadable", field="reason")


def _rows(mirror: Mirror, shas: Sequence[str]) -> list[MirrorCommit]:
    query = mirror.commits.filter(commit__repository=mirror.source_id, commit__sha__in=shas).select_related("commit")
    rows = list(query)
    unknown = set(shas) - {row.commit.sha for row in rows}
    if unknown:
        raise NotFound(f"there is no known commit '{min(unknown)[:80]}' at '{mirror.name}'")
    for row in rows:
        if row.waiver_id is not None:
            raise Conflict(f"{row.commit.sha[:8]} is waived already (waiver {row.waiver_id})", field="commits")
    return rows


def _check_heads(mirror: Mirror, shas: Sequence[str]) -> None:
    """Only ancestors are waived: a head is what people read."""
    shown = mirror.branches.filter(head__in=shas).first()
    if shown is not None:
        raise Conflict(f"{shown.head[:8]} is the head of {shown.name} at '{mirror.name}'", field="commits")
    tagged = mirror.tag_rows.filter(commit_id__in=shas, stray=False).first()
    if tagged is not None:
        raise Conflict(f"the tag {tagged.name} names {tagged.commit_id[:8]} at '{mirror.name}'", field="commits")
    wanted = mirror.source.branches.filter(head__in=shas, gone_at=None).first()
    if wanted is not None:
        raise Conflict(f"{wanted.head[:8]} is the head of {wanted.name} in {mirror.source.region}", field="commits")
