"""The mirrors manager: makes the repository of a new mirror, watches that it stays ours, finishes deletions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from django.db import transaction

from adapters.lakefs import CALL_SECONDS
from core.errors import Conflict, Fenced, NotFound
from core.ports import LakeFS
from core.types import RepositoryInfo
from db import clock
from deployment.wiring import clients
from jobs import duties
from jobs.lease import DutyOutcome, Lease
from mirroring import certificates
from mirroring.gc_rules import look_at_rules
from mirroring.listed_repository import repository_now
from mirroring.native_replication import look_at_replication
from mirrors.models import Mirror, MirrorCommit, MirrorDuty
from mirrors.services.priority import ask_again
from mirrors.transitions import duties as mirror_duties
from mirrors.transitions.doubt import doubt_all
from mirrors.transitions.required_commits import add_commits, require_commits
from mirrors.transitions.validity import locked_mirror

GHOST_LASTS = timedelta(seconds=15)
"""A repository that was just deleted lives on in the caches of lakeFS servers for some 7 s, without its branches."""


class _NotOurs(DutyOutcome):
    """The destination is not the repository that we know, and not ours to fill yet."""


def manage(lease: Lease) -> DutyOutcome:
    """One round for one mirror. Its files at the destination are kept only where that is known to be ours."""
    mirror = mirror_duties.subject_mirror(lease)
    steps = {
        Mirror.State.CREATING: _create,
        Mirror.State.ACTIVE: _watch,
        Mirror.State.STOPPED: _watch,
        Mirror.State.DELETING: _delete,
    }
    outcome = steps[Mirror.State(mirror.state)](lease, mirror)
    if isinstance(outcome, _NotOurs):
        return outcome
    if served := Mirror.objects.select_related("source").filter(pk=mirror.pk, state=Mirror.State.ACTIVE).first():
        require_commits(served, lease)
        certificates.keep(served, lease)
        look_at_rules(served)
        look_at_replication(served)
    return outcome


def is_pinned(mirror: Mirror, repository: RepositoryInfo) -> bool:
    """Whether a repository at the destination is the very one that we made (or adopted) for this mirror."""
    return (
        repository.id == mirror.name
        and repository.storage_namespace == mirror.storage_namespace
        and repository.creation_date == mirror.pinned_creation_date
    )


def require_pinned(mirror: Mirror, lakefs: LakeFS) -> None:
    """Stop the mirror and raise Fenced unless the destination is the repository of this mirror, and read-only."""
    repository = repository_now(lakefs, mirror.name)
    if is_pinned(mirror, repository) and repository.read_only:
        return
    if not Mirror.objects.filter(pk=mirror.pk, pinned_creation_date=mirror.pinned_creation_date).exists():
        raise Fenced(f"another repository was adopted for {mirror.name} meanwhile")
    raise Fenced(_stop_changed(mirror, repository).summary)


def fence(mirror: Mirror, lakefs: LakeFS, lease: Lease, is_wanted: Callable[[], bool]) -> None:
    """Before each forced call: the lease is ours for long enough, nobody has paused or stopped the mirror since the
    round began, the call is wanted still, and the destination is still what we pinned."""
    require_pinned(mirror, lakefs)
    if not Mirror.objects.filter(pk=mirror.pk, state=Mirror.State.ACTIVE, paused=False).exists():
        raise Fenced(f"{mirror.name} was paused or stopped meanwhile")
    if not is_wanted():
        raise Fenced(f"the settings of {mirror.name} were changed meanwhile")
    lease.fence(CALL_SECONDS)


def _stop_changed(mirror: Mirror, repository: RepositoryInfo) -> DutyOutcome:
    """The destination is not ours any more. A writable one in its place is how one fails over by hand."""
    if not repository.read_only and repository.storage_namespace == mirror.storage_namespace:
        why = f"the repository {mirror.name} in {mirror.region} became writable: nothing is changed there"
        return stop(mirror, "failed-over", why)
    why = f"the repository {mirror.name} in {mirror.region} is not the one that was created for this mirror"
    return stop(mirror, "repository-replaced", why)


def _create(lease: Lease, mirror: Mirror) -> DutyOutcome:
    lakefs = clients.lakefs(mirror.region)
    lease.fence(CALL_SECONDS)
    try:
        repository = lakefs.create_mirror_repository(
            name=mirror.name,
            storage_namespace=mirror.storage_namespace,
            default_branch=mirror.source.default_branch,
        )
    except Conflict:
        repository = lakefs.get_repository(mirror.name)
        if not _left_by_us(mirror, repository):
            return stop(
                mirror, "name-taken", f"a repository named {mirror.name} that is not this mirror is in {mirror.region}"
            )
        if mirror.pinned_creation_date is None and clock.now() - mirror.created_at < GHOST_LASTS:
            return DutyOutcome(f"the name {mirror.name} may not be free in {mirror.region} yet", next_in=2.0)
    Mirror.objects.filter(pk=mirror.pk).update(pinned_creation_date=repository.creation_date)
    _activate(mirror, repository)
    return DutyOutcome(f"created {mirror.name} in {mirror.region}")


def _left_by_us(mirror: Mirror, repository: RepositoryInfo) -> bool:
    """A crash after the creation leaves an empty, read-only repository over our own namespace: go on with it."""
    if mirror.pinned_creation_date is not None:
        return is_pinned(mirror, repository)
    return _is_empty_at_our_place(mirror, repository)


def _is_empty_at_our_place(mirror: Mirror, repository: RepositoryInfo) -> bool:
    same = repository.read_only and repository.storage_namespace == mirror.storage_namespace
    return same and not clients.lakefs(mirror.region).list_branches(mirror.name, amount=1).results


def _activate(mirror: Mirror, repository: RepositoryInfo) -> None:
    with transaction.atomic():
        pinned = {"pinned_creation_date": repository.creation_date, "reason_code": "", "reason": ""}
        if not Mirror.objects.move(mirror.pk, Mirror.State.CREATING, Mirror.State.ACTIVE, **pinned):
            return
        add_commits(mirror)
        for kind in (MirrorDuty.COPY_RECORDS, MirrorDuty.VALIDATE, MirrorDuty.PROMOTE):
            duties.wake(kind, mirror.pk)
        duties.wake(MirrorDuty.SENSE, mirror.source_id)


def _watch(lease: Lease, mirror: Mirror) -> DutyOutcome:
    try:
        repository = repository_now(clients.lakefs(mirror.region), mirror.name)
    except NotFound:
        if mirror.pinned_creation_date is None:
            Mirror.objects.move(mirror.pk, Mirror.State.STOPPED, Mirror.State.CREATING, reason_code="", reason="")
            return _create(lease, mirror)  # the name that stood in the way is free
        return stop(
            mirror,
            "repository-removed",
            f"the repository {mirror.name} is no longer in {mirror.region}: somebody removed it",
        )
    if mirror.pinned_creation_date is None:
        return DutyOutcome(mirror.reason)
    if not is_pinned(mirror, repository):
        return _follow_successor(mirror, repository, lease)
    if not repository.read_only:
        return _stop_changed(mirror, repository)
    return _start_again(mirror)


def _follow_successor(mirror: Mirror, repository: RepositoryInfo, lease: Lease) -> DutyOutcome:
    if not _made_anew(mirror, repository):
        return _stop_changed(mirror, repository)
    if not _is_known_to_servers(mirror, repository):
        text = f"not every server of {mirror.region} knows the new {mirror.name} yet"
        return _NotOurs(text, next_in=2.0)
    return _take_over(mirror, repository, lease)


def _made_anew(mirror: Mirror, repository: RepositoryInfo) -> bool:
    """Somebody deleted the mirror's repository and made it again, with nothing in it: that is ours to fill.

    An older one than ours is no successor but what a server's cache still knows.
    """
    newer = repository.creation_date > (mirror.pinned_creation_date or 0)
    return newer and _is_empty_at_our_place(mirror, repository)


def _is_known_to_servers(mirror: Mirror, repository: RepositoryInfo) -> bool:
    """A list tells of a repository some 10 s before the caches do that calls by its name go by: what these take
    meanwhile, they take for the old one."""
    cached = clients.lakefs(mirror.region).get_repository(mirror.name)
    return cached.creation_date == repository.creation_date


def _take_over(mirror: Mirror, repository: RepositoryInfo, lease: Lease) -> DutyOutcome:
    """Pin the new repository and begin again there: it has no branch and no record of ours. Who removed a repository
    may have emptied its place: nothing that was checked there counts any more."""
    certificates.retire_all(mirror, lease)
    with locked_mirror(mirror, lease, settings=False):
        Mirror.objects.filter(pk=mirror.pk).update(pinned_creation_date=repository.creation_date)
        mirror.branches.all().delete()
        mirror.tag_rows.all().delete()
        mirror.intents.all().delete()
        records = mirror.commits.exclude(record=MirrorCommit.Record.REFUSED)
        records.update(record=MirrorCommit.Record.PENDING, recorded_at=None)
        doubt_all(mirror)
        mirror.blockers.filter(reason="tampered-record").delete()
        ask_again(mirror)
        Mirror.objects.move(mirror.pk, Mirror.State.STOPPED, Mirror.State.ACTIVE, reason_code="", reason="")
        duties.wake(MirrorDuty.COPY_RECORDS, mirror.pk)
    return DutyOutcome(f"the repository {mirror.name} was created again in {mirror.region}: it is being filled")


def stop(mirror: Mirror, code: str, reason: str) -> DutyOutcome:
    """Nothing is forced on the destination until an operator decides."""
    for state in (Mirror.State.CREATING, Mirror.State.ACTIVE, Mirror.State.STOPPED):
        Mirror.objects.move(mirror.pk, state, Mirror.State.STOPPED, reason_code=code, reason=reason)
    return DutyOutcome(reason)


def _start_again(mirror: Mirror) -> DutyOutcome:
    """A repository that is again the pinned one (an unreachable replica answered before) is served again.

    Not while it holds a record that differs from the source's: that is for an operator to settle.
    """
    differing = mirror.blockers.filter(reason="tampered-record").first()
    if mirror.state == Mirror.State.STOPPED and differing is not None:
        return stop(mirror, "tampered-record", differing.detail)
    identity = ("repository-removed", "repository-replaced", "failed-over")
    if mirror.state == Mirror.State.STOPPED and mirror.reason_code in identity:
        Mirror.objects.move(mirror.pk, Mirror.State.STOPPED, Mirror.State.ACTIVE, reason_code="", reason="")
        duties.wake(MirrorDuty.PROMOTE, mirror.pk)
    return DutyOutcome("the destination is the repository of this mirror")


def _delete(lease: Lease, mirror: Mirror) -> DutyOutcome:
    lakefs = clients.lakefs(mirror.region)
    try:
        repository = repository_now(lakefs, mirror.name)
    except NotFound:
        _forget(mirror)
        return DutyOutcome(f"{mirror.name} is deleted; its objects stay")
    if not (_left_by_us(mirror, repository) and repository.read_only):
        _forget(mirror)
        return DutyOutcome(f"{mirror.name} is deleted; the repository of that name is not this mirror's and stays")
    lease.fence(CALL_SECONDS)
    with suppress(NotFound):  # a server's cache showed it for a while longer
        lakefs.delete_repository(mirror.name)
    return DutyOutcome(f"asked {mirror.region} to delete {mirror.name}", next_in=2.0)


def _forget(mirror: Mirror) -> None:
    """Rows and duties go together: a mirror without its manager would keep its name for ever."""
    with transaction.atomic():
        mirror_duties.drop_mirror_duties(mirror)
        mirror.delete()
