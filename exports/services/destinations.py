"""Which branch may be exported, and where to? Places of others are out of bounds, in both directions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from adapters.s3.store import split_uri
from core.errors import Invalid, LakeMirrorError, NotFound, Unreachable
from core.exporting.destinations import status_uri
from core.installations.places import Place
from core.types import RepositoryInfo
from db import clock
from deployment import config
from deployment.wiring import clients, region_settings
from exports.engine.time_slice import longest_after_a_run
from exports.models import Export, ExportRun
from installations.claimed_places import claimed_places
from mirrors.models import Mirror, Repository
from mirrors.services.adoption import reaching
from mirrors.services.placement import repositories_of
from rbac import services as rbac

_APART = "Choose a path of its own for the export"
_SEE_REPOSITORIES = ("fs:ListRepositories", "*")
_SEE_RULES = ("fs:ListReplicationRules", "*")


@dataclass(frozen=True, slots=True)
class Taken:
    """A place, and in words whose it is: told to those who have the `right`, for it may name what others keep to
    themselves."""

    place: Place
    whose: str
    right: tuple[str, str]


def check_region(region: str) -> None:
    """Raises Invalid for a region without a lakeFS, and for one whose exports another deployment works for."""
    region_settings.require_lakefs(region)
    known = config.current()
    if region not in known.served:
        raise Invalid(
            f"this deployment does not serve the region '{region}'",
            field="region",
            hint=f"It serves {', '.join(one for one in known.served if one in known.lakefs_regions)}",
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


def check_apart(actor: Any, path: str, status_path: str, source: RepositoryInfo, itself: Export) -> None:
    """By all that is stored: raises Invalid where one of the places lies in somebody else's, or holds it. `itself` says
    by region, repository, branch and name which export is to have them; it need not be a row."""
    for field, place in _named(path, status_path, itself.region):
        if place.overlaps(region_settings.place(itself.region, source.storage_namespace)):
            raise Invalid(
                f"{place} and the repository's own storage namespace {source.storage_namespace} overlap",
                field=field,
                hint=_APART,
            )
        for other in _others(field, itself):
            _check_overlap(actor, field, place, other)
    if status_path:
        _check_status_names(actor, status_path, itself)


def _check_overlap(actor: Any, field: str, place: Place, other: Taken) -> None:
    if not place.overlaps(other.place):
        return
    if rbac.allowed(actor, *other.right):
        raise Invalid(f"{place} and {other.place}, {other.whose}, overlap", field=field, hint=_APART)
    raise Invalid(f"{place} overlaps a place that you may not see", field=field, hint=_APART)


def _other_exports(itself: Export) -> QuerySet[Export]:
    return Export.objects.order_by("pk").exclude(**itself.identity)


def _check_status_names(actor: Any, status_path: str, itself: Export) -> None:
    """Raises Invalid where another export at this status path has the same names for its files: another one of the
    branch, that of a branch of the same name in another region, or of `lake-eu/main` beside `lake/eu-main`."""
    ours = status_uri(status_path, itself.repository, itself.branch, "")
    for other in _sharing(_place(itself, status_path), _other_exports(itself)):
        if status_uri(status_path, other.repository, other.branch, "") == ours:
            whose = str(other) if rbac.allowed(actor, "fs:ReadBranch", other.arn) else "another export"
            raise Invalid(
                f"at {status_path} the status files of {whose} have the same names, {ours}COMMIT",
                field="exportStatusPath",
                hint="Choose another status path for one of the two",
            )


def _sharing(status_place: Place, exports: QuerySet[Export]) -> Iterator[Export]:
    """Those whose states are written there, or may still be."""
    for export in exports:
        uris = (export.status_path, *(run.status_path for run in _writing(export)))
        if status_place.uri in uris and status_place.in_store_of(_place(export, status_place.uri)):
            yield export


def repositories_near(region: str, *places: str) -> list[Taken]:
    """The storage namespace of each repository that may lie where these places are ("" is none): of the source's
    installation, and of all whose store the place's bucket is looked for in. Unreachable."""
    regions = {near for place in places if place for near in _regions_of(region, place)}
    return [
        Taken(
            region_settings.place(near, repository.storage_namespace),
            f"the storage namespace of the repository '{repository.id}' in {near}",
            _SEE_REPOSITORIES,
        )
        for near in sorted(regions)
        for repository in repositories_of(clients.quick_lakefs(near), near, "lakeFS of")
    ]


def _regions_of(region: str, place: str) -> set[str]:
    """Those in which the place's address means the same objects; AWS is one store in all regions."""
    wanted = region_settings.export_place(region, place)
    return {near for near in region_settings.lakefs_names() if wanted.in_store_of(region_settings.place(near, place))}


def check_apart_from_repositories(
    actor: Any, path: str, status_path: str, region: str, repositories: Sequence[Taken]
) -> None:
    """Raises Invalid: lakeFS does not know of exports, and lets its repositories be overwritten."""
    for field, place in _named(path, status_path, region):
        for repository in repositories:
            _check_overlap(actor, field, place, repository)


def check_reached(path: str, status_path: str, region: str) -> None:
    """Raises Invalid where nothing answers for the store of a place. What a store answers is the run's to tell: who may
    not list may still write, and a bucket may still be made."""
    for field, place in _named(path, status_path, region):
        bucket = split_uri(place.uri)[0]
        try:
            clients.quick_export_store(region, place.uri).page(f"{place}/")
        except Unreachable as error:
            hint = (
                f"Make sure that this machine can reach it, or set another in export_stores.{bucket}; then save again"
            )
            raise Invalid(error.message, field=field, hint=hint) from error
        except LakeMirrorError:
            continue


def _named(path: str, status_path: str, region: str) -> list[tuple[str, Place]]:
    """The places that are given, each with the field that names it."""
    given = (("exportPath", path), ("exportStatusPath", status_path))
    return [(field, region_settings.export_place(region, uri)) for field, uri in given if uri]


def _others(field: str, itself: Export) -> Iterator[Taken]:
    """Places that are taken, and by whom. Status paths may be shared by those whose files there have other names."""
    for name, at, namespace in Mirror.objects.order_by().values_list("name", "region", "storage_namespace"):
        yield Taken(region_settings.place(at, namespace), f"where the mirror '{name}' lies", _SEE_REPOSITORIES)
    for name, at, namespace in Repository.objects.order_by().values_list("name", "region", "storage_namespace"):
        yield Taken(region_settings.place(at, namespace), f"the storage namespace of '{name}'", _SEE_REPOSITORIES)
    for place, whose in claimed_places(but="exports"):
        yield Taken(place, whose, _SEE_RULES)
    for export in _other_exports(itself):
        right = ("fs:ReadBranch", export.arn)
        taken = [*written_by(export), *(_told_by(export) if field == "exportPath" else ())]
        yield from (Taken(place, whose, right) for place, whose in taken)


def places() -> Iterator[tuple[Place, str]]:
    """All that exports write to, each with whose it is."""
    for export in Export.objects.order_by("pk"):
        yield from written_by(export)
        yield from _told_by(export)


def written_by(export: Export) -> Iterator[tuple[Place, str]]:
    """Where its files are, or may still arrive: a place that it has left is nobody else's before its last write."""
    yield _place(export, export.path), f"where {export} is exported to"
    for run in _writing(export):
        if run.path != export.path:
            yield _place(export, run.path), _left_by(run)


def _told_by(export: Export) -> Iterator[tuple[Place, str]]:
    """Where its states are written, or may still be."""
    if export.status_path:
        yield _place(export, export.status_path), f"where the states of {export} are written"
    for run in _writing(export):
        if run.status_path not in ("", export.status_path):
            yield _place(export, run.status_path), _left_by(run)


def _place(export: Export, uri: str) -> Place:
    return region_settings.export_place(export.region, uri)


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
