"""May anything be deleted at a mirror now? Not where its source is in doubt, nor where others lie in its namespace.

Each of these raises NothingGoes with the reason, or what an installation or a store answers.
"""

from __future__ import annotations

import hashlib
import logging
from datetime import timedelta
from typing import NoReturn

from django.db.models import Exists, OuterRef

from core.errors import Conflict
from core.listing import all_pages
from core.sweeping import METADATA, NothingGoes
from db import clock
from deployment.wiring import clients, region_settings, sweep_jobs
from deployment.wiring.region_settings import store_identity
from mirroring.listed_repository import repository_now
from mirroring.manage import is_pinned
from mirroring.sense.identity import ask_identity
from mirrors.models import Candidate, Mirror, Repository
from mirrors.services import placement

LATELY = timedelta(minutes=5)
"""A branch of the mirror's own that was looked at for uncommitted changes since then need not be asked once more."""
log = logging.getLogger("lakemirror.sweep")


def pins_of(mirror: Mirror) -> str:
    """A digest of the two repositories and stores: what a sweep of others found says nothing of these."""
    source = mirror.source
    parts = (
        (mirror.pk, mirror.storage_namespace, mirror.pinned_creation_date, store_identity(mirror.region)),
        (source.pk, source.storage_namespace, source.creation_date, store_identity(source.region)),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def require_certain(mirror: Mirror) -> None:
    """All of what follows here."""
    require_source(mirror)
    require_alone(mirror)
    require_committed(mirror)
    require_recorded(mirror)


def require_source(mirror: Mirror) -> None:
    """The source is the one that was pinned, and its store shows what has to be there."""
    source = Repository.objects.get(pk=mirror.source_id)
    if source.frozen_reason:
        raise NothingGoes(source.frozen_reason)
    if problem := ask_identity(source, clients.lakefs(source.region)).problem:
        raise NothingGoes(problem)
    require_shown(mirror)


def require_shown(mirror: Mirror) -> None:
    """A store that does not show the newest head's metarange (another bucket, an emptied one) proves nothing by a
    404."""
    source = mirror.source
    heads = Candidate.objects.filter(branch__repository=source, branch__gone_at=None).exclude(commit__metarange_id="")
    newest = heads.order_by("-commit_id").values_list("commit__metarange_id", flat=True).first()
    if newest is None:
        raise NothingGoes(f"no commit of {source.name} with a file is known")
    uri = f"{source.namespace}/{METADATA}{newest}"
    if sweep_jobs.store(source.region).head(uri) is None:
        raise NothingGoes(f"the source's store does not show {uri}: what it does not show may be there all the same")


def require_alone(mirror: Mirror) -> None:
    """The destination is this mirror's own repository, and nothing else lies in, or around, its namespace."""
    lakefs = clients.lakefs(mirror.region)
    own = repository_now(lakefs, mirror.name)
    if not (is_pinned(mirror, own) and own.read_only):
        raise NothingGoes(f"the repository {mirror.name} in {mirror.region} is not this mirror's, or is not read-only")
    wanted = region_settings.place(mirror.region, mirror.storage_namespace)
    for other in Mirror.objects.exclude(pk=mirror.pk).order_by("pk"):
        if wanted.overlaps(region_settings.place(other.region, other.storage_namespace)):
            _tell_shared(mirror, f"that of the mirror '{other.name}'")
    repositories = all_pages(lambda after: lakefs.list_repositories(after=after))
    try:
        placement.check_apart_from_sources(mirror.storage_namespace, mirror.region, mirror.name)
        placement.check_apart_from_others(mirror.storage_namespace, mirror.region)
        placement.check_apart_from_repositories(mirror.storage_namespace, repositories, mirror.region, mirror.name)
    except Conflict as error:
        _tell_shared(mirror, error.message)


def _tell_shared(mirror: Mirror, whose: str) -> NoReturn:
    """Whose the place is too stands in the log alone: not everybody who sees this mirror may see that."""
    log.warning("%s: its namespace is not its own alone: %s", mirror.name, whose)
    raise NothingGoes(
        f"{mirror.storage_namespace} is not this mirror's alone: another mirror, repository or export lies there too"
    )


def require_recorded(mirror: Mirror) -> None:
    """The books know what the mirror's own branches lead to: not so after a rebuild, or an adoption, until the source's
    log was read. All of their history is kept, and nobody knows it before."""
    known = mirror.commits.filter(commit__sha=OuterRef("head"))
    unknown = mirror.branches.filter(~Exists(known), stray=False, misplaced=False).exclude(head="")
    name = unknown.order_by("name").values_list("name", flat=True).first()
    if name is not None:
        raise NothingGoes(f"the history of the branch {name} at the mirror is not recorded yet")


def require_committed(mirror: Mirror, *, afresh: bool = True) -> None:
    """Nobody has uncommitted changes at the mirror: nobody can list which objects those name. Unless `afresh`, the
    books are believed of branches that were looked at lately; of those that somebody else made they know nothing."""
    lakefs = clients.lakefs(mirror.region)
    looked_at = mirror.branches.filter(stray=False, uncommitted=False, unlooked_since=None)
    lately = looked_at.filter(looked_at__gt=clock.now() - LATELY).values_list("name", flat=True)
    known = set() if afresh else set(lately)
    for branch in all_pages(lambda after: lakefs.list_branches(mirror.name, after=after)):
        if branch.name not in known and lakefs.has_uncommitted(mirror.name, branch.name):
            raise NothingGoes(f"the branch {branch.name} has uncommitted changes at the mirror, which name objects too")
