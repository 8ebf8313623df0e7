"""Mirrors made again from their destinations, for a database that was lost.

Rows only: nothing is moved, written or deleted at a destination. What the rows can't say any more the ordinary loops
find out. A branch stays where lakeFS says that it stands until the source was looked at anew; the certificate of its
head proves that the source's branch pointed there, so that a fast-forward since then is told from a move back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from django.db import IntegrityError, transaction

from audit.verbs import Verb
from core import pauses
from core.access.policies import repository_arn
from core.errors import Conflict, Invalid, LakeMirrorError, NotFound
from core.listing import all_pages, branch_heads, tag_commits
from core.ports import LakeFS
from core.types import RepositoryInfo
from db import clock
from deployment import config
from deployment.wiring import clients, region_settings
from installations.claimed_places import give_away
from installations.services import hold_lakefs
from mirrors.models import Mirror, MirrorBranch, MirrorTag, Repository, SourceBranch
from mirrors.queries.certificates import DESCRIPTOR, Descriptor, Proof, parse_descriptor, read_certificate
from mirrors.services.placement import check_source_apart, check_still_free, hold_places
from mirrors.transitions import duties
from mirrors.transitions.required_commits import add_commits
from rbac import services as rbac


class Result(StrEnum):
    """What became of one repository of a destination."""

    MADE = "rebuilt"
    WOULD = "would be rebuilt"
    UNCHANGED = "unchanged"
    NO_MIRROR = "not a mirror"
    LEFT = "skipped"


@dataclass(frozen=True, slots=True)
class Line:
    """What is told of one repository. `proven` of its `branches` stand where their certificates say."""

    region: str
    name: str
    result: Result
    detail: str = ""
    source: str = ""
    branches: int = 0
    proven: int = 0


@dataclass(frozen=True, slots=True)
class Destination:
    """A mirror as its destination shows it. `proofs` by branch; `doubts` tell of certificates that prove nothing."""

    descriptor: Descriptor
    heads: dict[str, str]
    tags: dict[str, str] = field(default_factory=dict)
    proofs: dict[str, Proof] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)

    def proven(self, branch: str) -> bool:
        """Whether the branch stands where its certificate says."""
        return branch in self.proofs and self.proofs[branch].commit == self.heads[branch]

    def line(self, result: Result) -> Line:
        descriptor, proven = self.descriptor, sum(map(self.proven, self.heads))
        source = f"{descriptor.source_repository} ({descriptor.source_region})"
        return Line(
            descriptor.region, descriptor.mirror, result, "; ".join(self.doubts), source, len(self.heads), proven
        )


def rebuild(*, actor: str, regions: Sequence[str], only: str = "", dry_run: bool = False) -> Iterator[Line]:
    """Make the rows of every mirror in `regions` again (or of the one named `only`), and tell of each repository."""
    seen = False
    for region in regions:
        try:
            for repository in _repositories(clients.lakefs(region), only):
                seen = True
                yield _rebuild_repository(actor, region, repository.id, dry_run)
        except LakeMirrorError as error:
            seen = True
            yield Line(region, only or "*", Result.LEFT, f"the repositories can't be listed: {error}")
    if only and not seen:
        yield Line(", ".join(regions), only, Result.LEFT, "there is no repository of that name")


def _repositories(lakefs: LakeFS, only: str) -> Iterator[RepositoryInfo]:
    if only:
        try:
            yield lakefs.get_repository(only)
        except NotFound:
            return
        return
    amount = config.current().list_repositories_page_size
    yield from all_pages(lambda after: lakefs.list_repositories(after=after, amount=amount))


def _rebuild_repository(actor: str, region: str, name: str, dry_run: bool) -> Line:
    if Mirror.objects.filter(name=name, region=region).exists():
        return Line(region, name, Result.UNCHANGED)
    try:
        repository = clients.lakefs(region).get_repository(name)
        if not _has_descriptor(region, repository):
            return Line(region, name, Result.NO_MIRROR, repository.storage_namespace)
        destination = _look(region, repository)
        _check_books(destination.descriptor)
        if not dry_run:
            _make(actor, destination)
    except LakeMirrorError as error:
        return Line(region, name, Result.LEFT, str(error))
    except IntegrityError:
        return Line(region, name, Result.LEFT, "it, or another mirror in its namespace, was created at the same time")
    return destination.line(Result.WOULD if dry_run else Result.MADE)


# --- looking --------------------------------------------------------------------------------------------------------


def _has_descriptor(region: str, repository: RepositoryInfo) -> bool:
    """A writable repository without one is no mirror. Raises NotFound for a read-only one, which may have been."""
    try:
        if clients.objects(region).head(f"{repository.storage_namespace}/{DESCRIPTOR}") is not None:
            return True
    except LakeMirrorError:
        if repository.read_only:
            raise
        return False
    if repository.read_only:
        hint = "If it is a mirror, adopt it with `manage.py adopt`"
        raise NotFound(f"a read-only repository without {DESCRIPTOR} below {repository.storage_namespace}", hint=hint)
    return False


def _look(region: str, repository: RepositoryInfo) -> Destination:
    descriptor = parse_descriptor(clients.objects(region).get(f"{repository.storage_namespace}/{DESCRIPTOR}"))
    _check_pins(region, repository, descriptor)
    region_settings.require_lakefs(descriptor.source_region, "source_region")
    lakefs = clients.lakefs(region)
    destination = Destination(
        descriptor, branch_heads(lakefs, repository.id), tag_commits(lakefs, repository.id) if descriptor.tags else {}
    )
    for branch in destination.heads:
        _read_proof(destination, branch)
    return destination


def _check_pins(region: str, repository: RepositoryInfo, descriptor: Descriptor) -> None:
    """Raises Conflict unless the repository is the one that the descriptor tells of, and read-only."""
    pins = (
        ("name", repository.id, descriptor.mirror),
        ("region", region, descriptor.region),
        ("storage namespace", repository.storage_namespace, descriptor.storage_namespace),
        ("creation date", repository.creation_date, descriptor.creation_date),
    )
    for what, is_, was in pins:
        if is_ != was:
            raise Conflict(f"its descriptor is another repository's: {what} {was}, but this one has {is_}")
    if not repository.read_only:
        raise Conflict("it is writable now, so people may be working there")


def _read_proof(destination: Destination, branch: str) -> None:
    try:
        proof = read_certificate(destination.descriptor.region, destination.descriptor.storage_namespace, branch)
    except Invalid as error:
        destination.doubts.append(error.message)
        return
    if proof is not None:
        destination.proofs[branch] = proof


def _check_books(descriptor: Descriptor) -> None:
    """Raises Conflict when what the descriptor says can't stand beside the rows that there are."""
    if Mirror.objects.filter(name=descriptor.mirror).exists():
        raise Conflict(f"a mirror named '{descriptor.mirror}' exists in another region")
    check_still_free(descriptor.storage_namespace, descriptor.region, descriptor.mirror)
    check_source_apart(descriptor.source_namespace, descriptor.source_region)
    source = Repository.objects.filter(region=descriptor.source_region, name=descriptor.source_repository).first()
    pins = (descriptor.source_namespace, descriptor.source_creation_date)
    if source and (source.storage_namespace, source.creation_date) != pins:
        raise Conflict(
            f"its source '{source.name}' in {source.region} is not the one that other mirrors were created from"
        )


# --- writing --------------------------------------------------------------------------------------------------------


def _copying_and_labels(descriptor: Descriptor) -> dict[str, Any]:
    """How its objects are brought, and deleted, which merges wait for that, and its labels."""
    return {
        "object_replication": descriptor.object_replication,
        "copying_paused": descriptor.copying_paused,
        "copy_workers": descriptor.copy_workers,
        "copy_bytes_per_second": descriptor.copy_bytes_per_second,
        "labels": dict(descriptor.labels),
        "copy_objects_per_second": descriptor.copy_objects_per_second,
        "branch_priority": list(descriptor.branch_priority),
        "hold": descriptor.hold,
        "follow_gc": descriptor.follow_gc,
        "delete_percent": descriptor.delete_percent,
        "delete_most": descriptor.delete_most,
        "held_since": clock.now() if descriptor.hold else None,
    }


def _hold(descriptor: Descriptor) -> None:
    hold_places()
    hold_lakefs(descriptor.region, descriptor.source_region)


@transaction.atomic
def _make(actor: str, destination: Destination) -> None:
    descriptor = destination.descriptor
    _hold(descriptor)
    _check_books(descriptor)
    source = _source(destination)
    mirror = Mirror.objects.create(
        name=descriptor.mirror,
        source=source,
        region=descriptor.region,
        storage_namespace=descriptor.storage_namespace,
        state=Mirror.State.ACTIVE,
        **pauses.of_pause(descriptor.pause),
        depth=descriptor.depth,
        content_sample=descriptor.content_sample,
        imported=descriptor.imported,
        repair_tampering=descriptor.repair_tampering,
        selected=dict(descriptor.selected),
        history=descriptor.history,
        first_sync=descriptor.first_sync,
        tags=descriptor.tags,
        rpo_seconds=descriptor.rpo_seconds,
        **_copying_and_labels(descriptor),
        pinned_creation_date=descriptor.creation_date,
        destination_looked_at=clock.now(),
    )
    give_away(region_settings.place(descriptor.region, descriptor.storage_namespace))
    Mirror.objects.filter(pk=mirror.pk).update(created_at=descriptor.created_at)
    MirrorBranch.objects.bulk_create([_branch(mirror, destination, name) for name in destination.heads], batch_size=500)
    # Nothing tells who made a tag: it is ours once the source is seen to have it there.
    tags = [MirrorTag(mirror=mirror, name=name, commit_id=sha, stray=True) for name, sha in destination.tags.items()]
    MirrorTag.objects.bulk_create(tags, batch_size=500)
    for name in filter(destination.proven, destination.heads):
        _remember_source_branch(source, destination, name)
    add_commits(mirror)
    duties.ensure_mirror_duties(mirror)
    rbac.audit(
        actor=actor,
        right=("fs:MirrorRepository", repository_arn(source.name)),
        verb=Verb.REBUILD,
        subject=mirror.audit_name,
        after={"mirror": mirror.name, "region": mirror.region, "storage_namespace": mirror.storage_namespace},
        reason="rebuilt from the destination's descriptor",
    )


def _source(destination: Destination) -> Repository:
    """The source as it was pinned. It was last looked at when the newest certificate was written, at the latest."""
    descriptor = destination.descriptor
    source, _ = Repository.objects.select_for_update(no_key=True).get_or_create(
        region=descriptor.source_region,
        name=descriptor.source_repository,
        defaults={
            "storage_namespace": descriptor.source_namespace,
            "creation_date": descriptor.source_creation_date,
            "default_branch": descriptor.default_branch,
            "looked_at": max((proof.at for proof in destination.proofs.values()), default=descriptor.created_at),
        },
    )
    return source


def _branch(mirror: Mirror, destination: Destination, name: str) -> MirrorBranch:
    """A branch where lakeFS says that it stands. Which candidate that is comes out at the first look at the source.

    Only a certificate of this very commit makes it ours. Else it may be somebody's own, made under the name of one that
    we had: it counts as such until the source is seen to have it too. Nothing of its head is proven now.
    """
    proven = destination.proven(name)
    return MirrorBranch(
        mirror=mirror,
        name=name,
        head=destination.heads[name],
        stray=not proven and name != destination.descriptor.default_branch,
        advanced_at=destination.proofs[name].at if proven else None,
        certified=destination.heads[name] if proven else "",
    )


def _remember_source_branch(source: Repository, destination: Destination, name: str) -> None:
    """A certificate of its head proves that the source had the branch there: when it is gone there, it is deleted as
    any other. No other mirror's certificate may tell of another head."""
    head = destination.heads[name]
    row, made = SourceBranch.objects.get_or_create(
        repository=source,
        name=name,
        defaults={"head": head, "position": -1, "changed_at": destination.proofs[name].at},
    )
    if not made and row.position < 0 and row.head != head:
        SourceBranch.objects.filter(pk=row.pk, position=-1).update(head="")
