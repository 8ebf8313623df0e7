"""The business verbs of mirrors: typed, keyword-only, knowing nothing of HTTP or the queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from audit.verbs import Verb
from core.access.policies import namespace_arn, repository_arn
from core.errors import Conflict, NotFound
from core.sweeping import check_can_follow
from core.types import RepositoryInfo
from db import clock
from deployment import config
from deployment.wiring import clients, region_settings
from installations import probes
from installations.claimed_places import give_away
from installations.services import hold_lakefs
from jobs import duties
from mirrors.models import Mirror, MirrorBranch, MirrorDuty, Repository, all_branches
from mirrors.queries.duties import OF_A_MIRROR
from mirrors.services import placement
from mirrors.services.adoption import Adopted, check_adoptable, reaching
from mirrors.services.rights import require_change, require_operation, right_to_delete
from mirrors.services.settings_etag import etag_of
from mirrors.transitions import duties as mirror_duties
from mirrors.transitions.selection import whole_selection
from rbac import services as rbac
from web.etags import ANYTHING, Seen


@dataclass(frozen=True, slots=True)
class Creation:
    """A mirror that could be made: all that was asked is in order. `settings` are columns of the mirror's."""

    source: RepositoryInfo
    source_region: str
    name: str
    region: str
    namespace: str
    settings: Mapping[str, Any]
    adopted: Adopted | None


def mirror_create(
    *,
    actor: Any,
    source_repository: str,
    name: str,
    region: str,
    storage_namespace: str,
    source_region: str = "",
    adopt: bool = False,
    settings: Mapping[str, Any] | None = None,
    failed_checks: Sequence[str] = (),
) -> Mirror:
    """Begin to mirror a repository; its manager makes the copy's repository next, or takes over the one to `adopt`.
    `failed_checks`: ids of checks that failed, which somebody ignores; they stand in the audit record.

    Raises what `check_creation` does; then nothing is stored.
    """
    creation = check_creation(
        actor=actor,
        source_repository=source_repository,
        name=name,
        region=region,
        storage_namespace=storage_namespace,
        source_region=source_region,
        adopt=adopt,
        settings=settings,
    )
    place = {"mirror": creation.name, "region": creation.region, "storage_namespace": creation.namespace}
    with transaction.atomic():
        mirror = _store(actor, creation)
        rbac.audit(
            actor=actor,
            right=rights_to_create(creation.source.id, creation.name, creation.namespace)[1],
            verb=Verb.CREATE,
            subject=mirror.audit_name,
            after={**place, "adopted": creation.adopted is not None, **creation.settings, **_ignored(failed_checks)},
        )
    return mirror


def _ignored(failed_checks: Sequence[str]) -> dict[str, list[str]]:
    return {"failed_checks": list(failed_checks)} if failed_checks else {}


def check_creation(
    *,
    actor: Any,
    source_repository: str,
    name: str,
    region: str,
    storage_namespace: str,
    source_region: str = "",
    adopt: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> Creation:
    """What may be made of what is asked. `settings` are columns; those that are not given have their default.

    Raises Denied, Invalid (naming the field), NotFound (no such source), Conflict (name or namespace taken) and
    Unreachable (source or destination can't be asked).
    """
    namespace = storage_namespace.rstrip("/")
    rbac.require(actor, *rights_to_create(source_repository, name, namespace))
    check_can_follow(settings or {})
    placement.check_name(name)
    probes.check_namespace(namespace)
    region_settings.require_lakefs(region)
    source_region = source_region or config.current().region
    source = ask_source(source_repository, source_region)
    placement.check_apart_from_source(namespace, region, source, source_region)
    placement.check_source_apart(source.storage_namespace, source_region)
    placement.check_not_the_source(name, region, source.id, source_region)
    placement.check_still_free(namespace, region, name)
    existing = _ask_destination(name, region)
    placement.check_free(existing, region, adopt)
    others = placement.repositories_of(clients.lakefs(region), region)
    placement.check_apart_from_repositories(namespace, others, region, name)
    adopted = check_adoptable(existing, region, namespace, source, source_region) if existing else None
    placement.check_unused(name)
    given = dict(whole_selection(settings or {}, all_branches(), source.default_branch))
    return Creation(source, source_region, name, region, namespace, given, adopted)


def rights_to_create(source: str, name: str, namespace: str) -> list[tuple[str, str]]:
    """What making a mirror, and asking whether one can be made, needs: action and ARN."""
    return [
        ("fs:CreateRepository", repository_arn(name)),
        ("fs:MirrorRepository", repository_arn(source)),
        ("fs:AttachStorageNamespace", namespace_arn(namespace)),
    ]


def ask_source(repository: str, region: str) -> RepositoryInfo:
    """The repository to mirror. Raises Invalid (no such region, or no lakeFS there), NotFound, and Unreachable where it
    can't be asked."""
    region_settings.require_lakefs(region, "source_region")
    try:
        with reaching(f"source {region}"):
            return clients.lakefs(region).get_repository(repository)
    except NotFound:
        raise NotFound(f"there is no repository '{repository}' in {region}") from None


def _ask_destination(name: str, region: str) -> RepositoryInfo | None:
    """The repository of that name, if there is one."""
    try:
        with reaching(f"destination {region}"):
            return clients.lakefs(region).get_repository(name)
    except NotFound:
        return None


def _store(actor: Any, creation: Creation) -> Mirror:
    adopted = creation.adopted
    try:
        with transaction.atomic():
            placement.hold_places()
            hold_lakefs(creation.region, creation.source_region)
            placement.check_still_free(creation.namespace, creation.region, creation.name)
            placement.check_source_apart(creation.source.storage_namespace, creation.source_region)
            repository = _pin_source(creation.source, creation.source_region)
            mirror = Mirror.objects.create(
                name=creation.name,
                source=repository,
                region=creation.region,
                storage_namespace=creation.namespace,
                pinned_creation_date=adopted.creation_date if adopted else None,
                created_by=actor,
                **creation.settings,
                held_since=clock.now() if creation.settings.get("hold") else None,
            )
            give_away(region_settings.place(creation.region, creation.namespace))
            Mirror.objects.filter(pk=mirror.pk).update(created_at=Now())  # and not by this machine's clock
            if adopted:
                rows = [MirrorBranch(mirror=mirror, name=branch, head=head) for branch, head in adopted.heads.items()]
                MirrorBranch.objects.bulk_create(rows, batch_size=500)
            mirror_duties.ensure_mirror_duties(mirror)
            duties.wake(MirrorDuty.MANAGE, mirror.pk)
    except IntegrityError:
        placement.check_unused(creation.name)
        raise Conflict(
            f"the namespace {creation.namespace} in {creation.region} is another mirror's", field="storage_namespace"
        ) from None
    return mirror


def _pin_source(source: RepositoryInfo, region: str) -> Repository:
    repository, _ = Repository.objects.select_for_update(no_key=True).get_or_create(
        region=region,
        name=source.id,
        defaults={
            "storage_namespace": source.storage_namespace,
            "creation_date": source.creation_date,
            "default_branch": source.default_branch,
        },
    )
    if placement.is_pinned(repository, source):
        # Somebody who may wants a mirror of it, and it is the one that we pinned: that ends a freeze.
        repository.frozen_reason = ""
        repository.save(update_fields=["frozen_reason"])
        return repository
    placement.check_same_source(repository, source)
    repository.delete()
    return _pin_source(source, region)


def mirror_lock(mirror: Mirror) -> Mirror:
    """A mirror as it is now and stays until the transaction ends. Raises NotFound when it is being deleted."""
    rows = Mirror.objects.live().select_related("source").select_for_update(of=("self",), no_key=True)
    locked: Mirror | None = rows.filter(pk=mirror.pk).first()
    if locked is None:
        raise NotFound(f"there is no mirror '{mirror.name}'")
    return locked


def mirror_delete(*, actor: Any, mirror: Mirror, seen: Seen = ANYTHING) -> None:
    """Forget a mirror: its references at the destination go, its objects stay; the name is free when that is done.

    Raises Denied, NotFound (it is being deleted) and Stale (not as it was `seen`).
    """
    right = right_to_delete(mirror)
    rbac.require(actor, right)
    with transaction.atomic():
        seen.require(etag_of(mirror_lock(mirror)), mirror.name)
        states = [state for state in Mirror.State if state != Mirror.State.DELETING]
        if not any(Mirror.objects.move(mirror.pk, state, Mirror.State.DELETING) for state in states):
            raise NotFound(f"there is no mirror '{mirror.name}'")
        duties.wake(MirrorDuty.MANAGE, mirror.pk)
        before = {"mirror": mirror.name, "region": mirror.region, "storage_namespace": mirror.storage_namespace}
        rbac.audit(actor=actor, right=right, verb=Verb.DELETE, subject=mirror.audit_name, before=before)


def mirror_sync(*, actor: Any, mirror: Mirror) -> None:
    """Look at the source, and again for everything that is missing, at once."""
    right = require_operation(actor, mirror)
    mirror.blockers.update(look_at=clock.now())
    duties.wake(MirrorDuty.SENSE, mirror.source_id)
    for kind in OF_A_MIRROR:
        duties.wake(kind, mirror.pk)
    after = {"sync": mirror.name}
    rbac.audit(actor=actor, right=right, verb=Verb.SYNC, subject=mirror.audit_name, after=after)


def branch_reset(*, actor: Any, mirror: Mirror, branch: str) -> None:
    """Have the uncommitted changes of a mirror's branch undone: whatever somebody wrote there by force is lost.

    Raises Denied, NotFound (no such branch) and Conflict (nothing can be changed at this mirror now).
    """
    right = require_change(actor, mirror)
    if mirror.state != Mirror.State.ACTIVE or mirror.paused or mirror.source.frozen_reason:
        raise Conflict(f"nothing can be changed at '{mirror.name}' while it is paused, stopped or frozen")
    can_be = "\0" not in branch  # PostgreSQL would take it for an error of ours
    with transaction.atomic():
        if not (can_be and mirror.branches.filter(name=branch, stray=False).update(reset_asked=True)):
            raise NotFound(f"'{mirror.name}' has no branch {branch[:80]!r}")
        duties.wake(MirrorDuty.PROMOTE, mirror.pk)
        after = {"reset_branch": branch, "mirror": mirror.name}
        rbac.audit(actor=actor, right=right, verb=Verb.RESET_BRANCH, subject=mirror.audit_name, after=after)
