"""May a mirror have this name, and this place? The rules of creation, and what the preflight says of them.

A place is taken by whoever stores it first. So it is judged once more inside of the transaction that stores it, while
`hold_places` keeps everybody else who wants one waiting: mirrors, sources and exports alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django.db.models.functions import Now

from core.errors import Conflict, Invalid
from core.installations.places import overlap
from core.listing import all_pages
from core.ports import LakeFS
from core.types import Page, RepositoryInfo
from deployment import config
from deployment.wiring.region_settings import place
from installations.claimed_places import claimed_places
from installations.probes import NAME
from mirrors.models import Mirror, PlaceLock, Repository
from mirrors.services.adoption import reaching

RESERVED = frozenset({"new"})
"""Names that would hide a page: `/mirrors/new/` makes mirrors."""

_APART = "Choose a namespace of its own for the mirror"


# --- the name ---------------------------------------------------------------------------------------------------------


def check_name(name: str) -> None:
    """Raises Invalid unless lakeFS would take it for a repository, and the pages have a place for it."""
    if not NAME.fullmatch(name):
        raise Invalid(
            f"'{name[:80]}' is not a valid mirror name",
            field="name",
            hint="Use 3 to 63 lower-case letters, digits and '-', beginning with a letter or digit",
        )
    if name in RESERVED:
        raise Invalid(
            f"'{name}' is not a valid mirror name: /mirrors/{name}/ is a page of LakeMirror's own",
            field="name",
            hint="Choose another name",
        )


def check_not_the_source(name: str, region: str, source_repository: str, source_region: str) -> None:
    """Raises Invalid for a mirror that would be its own source."""
    if (region, name) == (source_region, source_repository):
        raise Invalid(f"'{name}' is the source itself", field="name", hint="Choose another name")


def check_unused(name: str) -> None:
    """Raises Conflict if a mirror has the name, or keeps it until it is deleted."""
    reserved = Mirror.objects.filter(name=name).first()
    if reserved is None:
        return
    if reserved.state == Mirror.State.DELETING:
        raise Conflict(f"the mirror '{name}' is being deleted", field="name", hint="Try again in some seconds")
    raise Conflict(f"a mirror named '{name}' exists", field="name", hint="Choose another name")


def check_free(existing: RepositoryInfo | None, region: str, adopt: bool) -> None:
    """Raises Conflict if the destination has a repository of the name; Invalid if one to adopt isn't there."""
    if adopt and existing is None:
        raise Invalid(
            f"there is no such repository to adopt in {region}",
            field="name",
            hint="Use the name of an existing repository",
        )
    if existing is not None and not adopt:
        raise Conflict(
            f"a repository named '{existing.id}' exists in {region}",
            field="name",
            hint='If it is a read-only copy of this source, adopt it: under More settings, or by "adopt": true',
        )


# --- the place --------------------------------------------------------------------------------------------------------


def hold_places() -> None:
    """Inside of a transaction, before anything else in it is locked: nobody else takes a place until it ends. What
    others have stored before can be seen from here on."""
    if not _taken():
        PlaceLock.objects.bulk_create([PlaceLock(pk=1)], ignore_conflicts=True)
        _taken()


def _taken() -> bool:
    """An update locks the row, and on SQLite the whole database."""
    return PlaceLock.objects.filter(pk=1).update(taken_at=Now()) == 1


def check_still_free(namespace: str, region: str, name: str) -> None:
    """By all that is stored, for the mirror of this name. Raises Conflict."""
    check_apart_from_mirrors(namespace, region)
    check_apart_from_sources(namespace, region, name)
    check_apart_from_others(namespace, region)


def _overlapping(namespace: str, what: str) -> Conflict:
    return Conflict(f"the namespace {namespace} overlaps {what}", field="storage_namespace", hint=_APART)


def check_apart_from_source(namespace: str, region: str, source: RepositoryInfo, source_region: str) -> None:
    """Raises Invalid if the mirror's objects would lie among the source's."""
    if place(region, namespace).overlaps(place(source_region, source.storage_namespace)):
        raise Invalid(
            f"the namespace {namespace} overlaps the source's {source.storage_namespace}",
            field="storage_namespace",
            hint=_APART,
        )


def check_apart_from_mirrors(namespace: str, region: str) -> None:
    """Raises Conflict if they would lie among another mirror's, of whatever region: some share a store."""
    wanted = place(region, namespace)
    for other in Mirror.objects.order_by("pk"):
        if wanted.overlaps(place(other.region, other.storage_namespace)):
            raise _overlapping(namespace, f"that of the mirror '{other.name}'")


def check_apart_from_sources(namespace: str, region: str, name: str) -> None:
    """Raises Conflict if they would lie among those of a repository that somebody mirrors: of another one, that is, for
    a mirror may have mirrors of its own."""
    wanted = place(region, namespace)
    for source in Repository.objects.order_by("pk"):
        is_itself = (source.region, source.name) == (region, name)
        if not is_itself and wanted.overlaps(place(source.region, source.storage_namespace)):
            raise _overlapping(namespace, f"that of '{source.name}' in {source.region}")


def check_apart_from_others(namespace: str, region: str) -> None:
    """Raises Conflict if somebody else (an export, a rule) would write among them, or they lie among what it wrote."""
    wanted = place(region, namespace)
    for claimed, whose in claimed_places():
        if wanted.overlaps(claimed):
            raise _overlapping(namespace, f"{claimed}, {whose}")


def check_source_apart(namespace: str, region: str) -> None:
    """Raises Conflict if somebody else (an export, a rule) writes among the objects of what is to be mirrored."""
    wanted = place(region, namespace)
    for claimed, whose in claimed_places():
        if wanted.overlaps(claimed):
            raise Conflict(
                f"the source's namespace {namespace} overlaps {claimed}, {whose}",
                field="source_repository",
                hint="Delete that export or rule, or change the path of the export",
            )


def check_apart_from_repositories(namespace: str, others: Iterable[RepositoryInfo], region: str, name: str) -> None:
    """Of the mirror's own region, so of the same store. Raises Conflict: lakeFS lets repositories share a place, and
    one's garbage collection may take another's."""
    for other in others:
        if other.id != name and overlap(other.storage_namespace, namespace):
            raise _overlapping(namespace, f"that of the repository '{other.id}' in {region}")


def repositories_of(lakefs: LakeFS, region: str, side: str = "destination") -> Iterator[RepositoryInfo]:
    """All repositories of an installation. Raises Unreachable, which calls it by its `side`."""
    amount = config.current().list_repositories_page_size

    def list_page(after: str) -> Page[RepositoryInfo]:
        with reaching(f"{side} {region}"):
            return lakefs.list_repositories(after=after, amount=amount)

    return all_pages(list_page)


# --- the source -------------------------------------------------------------------------------------------------------


def is_pinned(repository: Repository, source: RepositoryInfo) -> bool:
    """Whether the source is the repository that we know by its name."""
    pinned = (repository.storage_namespace, repository.creation_date)
    return pinned == (source.storage_namespace, source.creation_date)


def check_same_source(repository: Repository, source: RepositoryInfo) -> None:
    """Raises Conflict if mirrors were made from an earlier repository of the name."""
    if not is_pinned(repository, source) and repository.mirrors.exists():
        raise Conflict(
            f"'{source.id}' in {repository.region} is not the repository that existing mirrors were created from",
            field="source_repository",
            hint="Delete the mirrors of the previous repository first",
        )
