"""Which branch may be exported, and where to? Places of others are out of bounds, in both directions."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Q

from adapters.s3.store import split_uri
from core.errors import Invalid, LakeMirrorError, NotFound, Unreachable
from core.exporting.destinations import overlap
from core.types import RepositoryInfo
from db import clock
from deployment import config
from deployment.wiring import clients, region_settings
from exports.engine.time_slice import longest_after_a_run
from exports.models import Export, ExportRun
from mirrors.models import Mirror, Repository
from mirrors.services.adoption import reaching

_APART = "Choose a place of its own for the export"


def check_region(region: str) -> None:
    """Raises Invalid for a region whose exports another deployment works for."""
    region_settings.installation(region)
    if region not in config.current().served:
        raise Invalid(
            f"this deployment does not serve the region '{region}'",
            field="region",
            hint=f"It serves {', '.join(config.current().served)}",
        )


def source_of(region: str, repository: str) -> RepositoryInfo:
    """The repository as its installation describes it. NotFound, Unreachable."""
    try:
        with reaching(f"source {region}"):
            return clients.quick_lakefs(region).get_repository(repository)
    except NotFound:
        raise NotFound(f"there is no repository '{repository[:80]}' in {region}") from None


def check_branch(region: str, repository: str, branch: str) -> str:
    """The branch's head. NotFound, Unreachable."""
    try:
        with reaching(f"source {region}"):
            return clients.quick_lakefs(region).get_branch(repository, branch).commit_id
    except NotFound:
        raise NotFound(f"there is no branch '{branch[:80]}' in '{repository}'") from None


def check_apart(path: str, status_path: str, source: RepositoryInfo, region: str, branch: str) -> None:
    """Raises Invalid where one of the places lies in somebody else's, or holds it."""
    for field, place in (("exportPath", path), ("exportStatusPath", status_path)):
        if not place:
            continue
        if overlap(place, source.storage_namespace):
            raise Invalid(
                f"{place} and the repository's own storage namespace {source.storage_namespace} overlap",
                field=field,
                hint=_APART,
            )
        for other, whose in _others(field, region, source.id, branch):
            if overlap(place, other):
                raise Invalid(f"{place} and {other}, {whose}, overlap", field=field, hint=_APART)


def check_reached(path: str, status_path: str, region: str) -> None:
    """Raises Invalid where nothing answers for the store of a place. What a store answers is the run's to tell: who may
    not list may still write, and a bucket may still be made."""
    for field, place in (("exportPath", path), ("exportStatusPath", status_path)):
        if not place:
            continue
        bucket = split_uri(place)[0]
        try:
            clients.quick_export_store(region, bucket).page(f"{place}/")
        except Unreachable as error:
            hint = f"See to it that this machine reaches it, or name another in export_stores.{bucket}; then save again"
            raise Invalid(error.message, field=field, hint=hint) from error
        except LakeMirrorError:
            continue


def _others(field: str, region: str, repository: str, branch: str) -> Iterator[tuple[str, str]]:
    """Places that are taken, and by whom. Status paths may be shared: their files bear repository and branch."""
    for name, namespace in Mirror.objects.order_by().values_list("name", "storage_namespace"):
        yield namespace, f"where the mirror '{name}' lies"
    for name, namespace in Repository.objects.order_by().values_list("name", "storage_namespace"):
        yield namespace, f"the storage namespace of '{name}'"
    for export in Export.objects.order_by().exclude(region=region, repository=repository, branch=branch):
        yield from written_by(export)
        if field == "exportPath":
            yield from _told_by(export)


def places() -> Iterator[tuple[str, str]]:
    """All that exports write to, each with whose it is."""
    for export in Export.objects.order_by("pk"):
        yield from written_by(export)
        yield from _told_by(export)


def written_by(export: Export) -> Iterator[tuple[str, str]]:
    """Where its files are, or may still arrive: a place that it has left is nobody else's before its last write."""
    yield export.path, f"where {export} is exported to"
    for run in _writing(export):
        if run.path != export.path:
            yield run.path, _left_by(run)


def _told_by(export: Export) -> Iterator[tuple[str, str]]:
    """Where its states are written, or may still be."""
    if export.status_path:
        yield export.status_path, f"where the states of {export} are written"
    for run in _writing(export):
        if run.status_path not in ("", export.status_path):
            yield run.status_path, _left_by(run)


def _writing(export: Export) -> list[ExportRun]:
    """The runs of which something may still be written: the one that goes on, and where a write got no answer also
    those that ended so shortly before that it may be theirs. The last one's state is told anew when it is repaired."""
    now = clock.now()
    runs = export.runs.order_by("-pk").select_related("export")
    if export.writes_until is None or export.writes_until <= now:
        return list(runs.open())
    ended = Q(ended_at__gt=now - longest_after_a_run())
    return list(runs.filter(Q(ended_at=None) | ended | Q(pk__in=runs.values("pk")[:1])))


def _left_by(run: ExportRun) -> str:
    if run.ended_at is None:
        return f"where a run of {run.export} still writes"
    return f"where a write of {run.export} may still arrive, until {run.export.writes_until:%H:%M:%S} UTC"
