"""What a destination can answer for itself when the database is lost: a descriptor, and a certificate for each branch.

Both are small files below the mirror's namespace, kept by its manager: written when they differ from the books, again
and again until the store takes them. They hold no secrets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from core import labels, pauses
from core.bringing import (
    DEFAULT_WORKERS,
    LEAST_BYTES_PER_SECOND,
    MOST_BYTES_PER_SECOND,
    MOST_OBJECTS_PER_SECOND,
    MOST_WORKERS,
    ObjectReplication,
)
from core.errors import Invalid, NotFound
from core.holding import parse_policies
from core.mirroring.facts import History
from core.mirroring.judgement import Judgement
from core.mirroring.object_check import Depth, Imported
from core.mirroring.promotion import Repair
from core.mirroring.rpo import LONGEST_RPO
from core.mirroring.source_moves import FirstSync
from core.sweeping import MOST_MOST, USUAL_MOST, USUAL_PERCENT
from core.text.json_fields import (
    choice_of,
    field_of,
    limit_of,
    moment_of,
    number_of,
    number_within,
    object_of,
    share_of,
    text_of,
    texts_of,
)
from deployment import config
from deployment.wiring import clients
from graveler.content import Content, digest_of
from mirrors.models import Commit, Mirror, MirrorCommit, all_branches
from mirrors.queries.coverage import covering
from mirrors.queries.metaranges import ranges_named
from mirrors.queries.proof_facts import judge, row_of

PREFIX = "_lakemirror"
DESCRIPTOR = f"{PREFIX}/mirror.json"
METHOD = "ids of commit, metarange and ranges recomputed from the bytes; every entry compared with its object"


# --- the descriptor -------------------------------------------------------------------------------------------------

_NEWER_SETTINGS = {
    "repair_tampering": "report",
    "branches": all_branches(),
    "history": "full",
    "first_sync": "exact",
    "tags": False,
    "rpo_seconds": None,
    "object_replication": "native",
    "copying_paused": False,
    "copy_workers": DEFAULT_WORKERS,
    "copy_bytes_per_second": None,
    "copy_objects_per_second": None,
    "branch_priority": [],
    "hold": [],
    "follow_gc": False,
    "delete_percent": USUAL_PERCENT,
    "delete_most": USUAL_MOST,
    "labels": {},
}
"""Those that descriptors of earlier versions don't have, as they were then."""


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A mirror as its destination describes it: source, pins and settings. Creation dates in Unix seconds."""

    mirror: str
    region: str
    storage_namespace: str
    creation_date: int
    created_at: datetime
    source_region: str
    source_repository: str
    source_namespace: str
    source_creation_date: int
    default_branch: str
    depth: str
    content_sample: float
    imported: str
    pause: pauses.Pause | None
    repair_tampering: str
    selected: Mapping[str, list[str]]
    history: str
    first_sync: str
    tags: bool
    rpo_seconds: int | None
    object_replication: str
    copying_paused: bool
    copy_workers: int
    copy_bytes_per_second: int | None
    copy_objects_per_second: int | None
    branch_priority: list[str]
    hold: list[dict[str, Any]]
    follow_gc: bool
    delete_percent: int
    delete_most: int
    labels: Mapping[str, str]


def describe(mirror: Mirror) -> Descriptor:
    """What the books say of a mirror."""
    source = mirror.source
    return Descriptor(
        mirror=mirror.name,
        region=mirror.region,
        storage_namespace=mirror.storage_namespace,
        creation_date=mirror.pinned_creation_date or 0,
        created_at=mirror.created_at,
        source_region=source.region,
        source_repository=source.name,
        source_namespace=source.storage_namespace,
        source_creation_date=source.creation_date,
        default_branch=source.default_branch,
        depth=mirror.depth,
        content_sample=mirror.content_sample,
        imported=mirror.imported,
        pause=mirror.pause,
        repair_tampering=mirror.repair_tampering,
        selected=mirror.selected,
        history=mirror.history,
        first_sync=mirror.first_sync,
        tags=mirror.tags,
        rpo_seconds=mirror.rpo_seconds,
        object_replication=mirror.object_replication,
        copying_paused=mirror.copying_paused,
        copy_workers=mirror.copy_workers,
        copy_bytes_per_second=mirror.copy_bytes_per_second,
        copy_objects_per_second=mirror.copy_objects_per_second,
        branch_priority=mirror.branch_priority,
        hold=mirror.hold,
        follow_gc=mirror.follow_gc,
        delete_percent=mirror.delete_percent,
        delete_most=mirror.delete_most,
        labels=mirror.labels,
    )


def descriptor_bytes(descriptor: Descriptor) -> bytes:
    """The file's text; the same facts give the same bytes."""
    body = {
        "organization": config.current().organization_id,
        "mirror": descriptor.mirror,
        "region": descriptor.region,
        "storage_namespace": descriptor.storage_namespace,
        "creation_date": descriptor.creation_date,
        "created_at": descriptor.created_at.astimezone(UTC).isoformat(),
        "source": {
            "region": descriptor.source_region,
            "repository": descriptor.source_repository,
            "storage_namespace": descriptor.source_namespace,
            "creation_date": descriptor.source_creation_date,
            "default_branch": descriptor.default_branch,
        },
        "settings": {
            "depth": descriptor.depth,
            "content_sample": descriptor.content_sample,
            "imported": descriptor.imported,
            "paused": descriptor.pause is not None,
            "repair_tampering": descriptor.repair_tampering,
            "branches": {name: descriptor.selected[name] for name in ("include", "exclude")},
            "history": descriptor.history,
            "first_sync": descriptor.first_sync,
            "tags": descriptor.tags,
            "rpo_seconds": descriptor.rpo_seconds,
            "object_replication": descriptor.object_replication,
            "copying_paused": descriptor.copying_paused,
            "copy_workers": descriptor.copy_workers,
            "copy_bytes_per_second": descriptor.copy_bytes_per_second,
            "copy_objects_per_second": descriptor.copy_objects_per_second,
            "branch_priority": descriptor.branch_priority,
            "hold": descriptor.hold,
            "follow_gc": descriptor.follow_gc,
            "delete_percent": descriptor.delete_percent,
            "delete_most": descriptor.delete_most,
            **({"labels": descriptor.labels} if descriptor.labels else {}),
            **_said_of(descriptor.pause),
        },
    }
    return json.dumps(body, indent=1).encode()


def parse_descriptor(data: bytes) -> Descriptor:
    """A descriptor from its bytes. Raises Invalid, naming what is wrong with them."""
    body = object_of(data, "the descriptor")
    source, settings = field_of(body, "source", dict), _NEWER_SETTINGS | field_of(body, "settings", dict)
    return Descriptor(
        mirror=text_of(body, "mirror", 64),
        region=text_of(body, "region", 64),
        storage_namespace=text_of(body, "storage_namespace", 1024),
        creation_date=number_of(body, "creation_date"),
        created_at=moment_of(body, "created_at"),
        source_region=text_of(source, "region", 64),
        source_repository=text_of(source, "repository", 64),
        source_namespace=text_of(source, "storage_namespace", 1024),
        source_creation_date=number_of(source, "creation_date"),
        default_branch=text_of(source, "default_branch", 256),
        depth=choice_of(settings, "depth", list(Depth)),
        content_sample=share_of(settings, "content_sample"),
        imported=choice_of(settings, "imported", list(Imported)),
        pause=_pause(settings),
        repair_tampering=choice_of(settings, "repair_tampering", list(Repair)),
        tags=field_of(settings, "tags", bool),
        selected={name: texts_of(field_of(settings, "branches", dict), name, 256) for name in ("include", "exclude")},
        history=choice_of(settings, "history", list(History)),
        first_sync=choice_of(settings, "first_sync", list(FirstSync)),
        rpo_seconds=_seconds(settings, "rpo_seconds"),
        object_replication=choice_of(settings, "object_replication", list(ObjectReplication)),
        copying_paused=field_of(settings, "copying_paused", bool),
        copy_workers=number_within(settings, "copy_workers", 1, MOST_WORKERS),
        copy_bytes_per_second=limit_of(
            settings, "copy_bytes_per_second", LEAST_BYTES_PER_SECOND, MOST_BYTES_PER_SECOND
        ),
        copy_objects_per_second=limit_of(settings, "copy_objects_per_second", 1, MOST_OBJECTS_PER_SECOND),
        branch_priority=texts_of(settings, "branch_priority", 256),
        hold=parse_policies(field_of(settings, "hold", list)),
        labels=labels.of(field_of(settings, "labels", dict)),
        **_deletions(settings),
    )


def _deletions(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Only what says so in so many words has anything deleted; and not where the stores copy the objects."""
    managed = settings["object_replication"] == ObjectReplication.MANAGED
    return {
        "follow_gc": settings["follow_gc"] is True and managed,
        "delete_percent": number_within(settings, "delete_percent", 0, 100),
        "delete_most": number_within(settings, "delete_most", 0, MOST_MOST),
    }


def _said_of(pause: pauses.Pause | None) -> dict[str, Any]:
    """What was said of a pause, if anything was."""
    said = pauses.to_json(pause) if pause else {}
    return {"pause": said} if said else {}


def _pause(settings: Mapping[str, Any]) -> pauses.Pause | None:
    """Descriptors of earlier versions tell that there is a pause, and no more."""
    said = field_of({"pause": {}, **settings}, "pause", dict)
    return pauses.of_json(said) if field_of(settings, "paused", bool) else None


# --- certificates ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Certificate:
    """What was proven of a commit at a destination. The digest covers all of it: equal facts, equal digest.

    `content` is as much of it as the bytes alone tell, with a digest of its own: `python -m graveler certify`.
    """

    commit: str
    metarange: str
    ranges: int
    entries: int
    bytes: int
    depth: str
    method: str
    region: str
    storage_namespace: str

    def facts(self) -> dict[str, Any]:
        """The facts by name."""
        return {name: getattr(self, name) for name in self.__slots__}

    @property
    def content(self) -> Content:
        """What the commit holds, wherever it lies."""
        return Content(self.commit, self.metarange, self.ranges, self.entries, self.bytes)

    def digest(self) -> str:
        """That of all of the facts."""
        return digest_of(self.facts())

    def document(self, **about: Any) -> dict[str, Any]:
        """The facts and their digests; `about` (who, when, for which branch) is outside of the digests."""
        return {**self.facts(), "content_digest": self.content.digest(), "digest": self.digest(), **about}


def certify(mirror: Mirror, commit: Commit) -> Certificate:
    """The certificate of a commit that the judge finds whole now. NotFound, with why, when it is not."""
    row = row_of(mirror, commit.sha)
    judgement = judge(mirror, row)
    if not judgement.allowed:
        raise _not_validated(mirror, commit, _why(row, judgement))
    named = ranges_named(mirror, commit.metarange_id) or ()
    covered = covering(mirror.coverage.proving(mirror.depth), [ref.id for ref in named])
    if covered.ranges != len(named):
        raise _not_validated(mirror, commit, f"{covered.ranges} of its {len(named)} ranges are validated now")
    return Certificate(
        commit=commit.sha,
        metarange=commit.metarange_id,
        ranges=covered.ranges,
        entries=covered.entries,
        bytes=covered.bytes,
        depth=mirror.depth,
        method=METHOD,
        region=mirror.region,
        storage_namespace=mirror.storage_namespace,
    )


def _not_validated(mirror: Mirror, commit: Commit, reason: str) -> NotFound:
    return NotFound(f"commit {commit.sha[:8]} is not validated at '{mirror.name}': {reason}")


def _why(row: MirrorCommit | None, judgement: Judgement) -> str:
    detail = row.detail if row is not None and row.data != MirrorCommit.Data.COMPLETE else ""
    return f"{judgement.detail} ({detail})" if detail else judgement.detail


def certificate_uri(namespace: str, branch: str) -> str:
    """Where the certificate of a branch's head lies: one file a branch, so that their number stays bounded."""
    return f"{namespace}/{PREFIX}/certificates/{quote(branch, safe='')}.json"


@dataclass(frozen=True, slots=True)
class Proof:
    """A certificate as read back: the commit that a branch was promoted to, and when that was written."""

    commit: str
    at: datetime


def read_certificate(region: str, namespace: str, branch: str) -> Proof | None:
    """The certificate of a branch at a destination; None when there is none. Raises Invalid when it proves nothing."""
    try:
        data = clients.objects(region).get(certificate_uri(namespace, branch))
    except NotFound:
        return None
    body = object_of(data, f"the certificate of {branch}")
    if body.get("retired"):
        return None
    certificate = Certificate(
        commit=text_of(body, "commit", 64),
        metarange=text_of(body, "metarange", 64),
        ranges=number_of(body, "ranges"),
        entries=number_of(body, "entries"),
        bytes=number_of(body, "bytes"),
        depth=text_of(body, "depth", 16),
        method=text_of(body, "method", 1024),
        region=text_of(body, "region", 64),
        storage_namespace=text_of(body, "storage_namespace", 1024),
    )
    # Earlier versions wrote no digest of the content.
    if (body.get("digest"), body.get("content_digest", certificate.content.digest())) != (
        certificate.digest(),
        certificate.content.digest(),
    ):
        raise Invalid(f"the certificate of {branch} does not match its digest")
    if (certificate.region, certificate.storage_namespace, body.get("branch")) != (region, namespace, branch):
        raise Invalid(f"the certificate of {branch} was issued for another place")
    return Proof(certificate.commit, moment_of(body, "at"))


def _seconds(body: Mapping[str, Any], name: str) -> int | None:
    value = None if body.get(name) is None else number_of(body, name)
    if value is not None and not 0 < value <= LONGEST_RPO:
        raise Invalid(f"the field '{name}' is damaged: {value} is not a valid target")
    return value
