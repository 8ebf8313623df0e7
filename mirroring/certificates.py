"""The destination's own files, kept by its mirror's manager: written when they differ from the books, until the store
takes them."""

from __future__ import annotations

import hashlib
import json
import logging
from functools import partial

from django.db.models import F

from adapters.s3.store import CONNECT_SECONDS, READ_SECONDS
from core.errors import Fenced, Invalid, LakeMirrorError, NotFound
from db import clock
from deployment.wiring import clients
from jobs.lease import HOLDER, Lease
from mirrors.models import Mirror, MirrorBranch
from mirrors.models.waived import told_waivers
from mirrors.queries.certificates import (
    DESCRIPTOR,
    certificate_uri,
    certify,
    describe,
    descriptor_bytes,
    read_certificate,
)
from mirrors.queries.proof_facts import store_of

log = logging.getLogger("lakemirror.certificates")

PUT_SECONDS = CONNECT_SECONDS + READ_SECONDS


def _write_descriptor(mirror: Mirror) -> None:
    """Put a mirror's descriptor at its destination, unless this very text was put there, at this very store, before."""
    data = descriptor_bytes(describe(mirror))
    digest = hashlib.sha256(data + store_of(mirror).encode()).hexdigest()
    if digest == mirror.described:
        return
    clients.objects(mirror.region).put(f"{mirror.storage_namespace}/{DESCRIPTOR}", data)
    Mirror.objects.filter(pk=mirror.pk).update(described=digest)


def retire_certificate(mirror: Mirror, branch: str, lease: Lease) -> None:
    """Before a branch is deleted: its certificate proves nothing of a branch that somebody may make under its name."""
    if not _is_live(mirror, branch):
        return
    body = {"branch": branch, "retired": True, "at": clock.now().isoformat()}
    _note_uncertified(mirror, branch, lease)  # first: nobody may hear that it was retired
    lease.fence(PUT_SECONDS)
    uri = certificate_uri(mirror.storage_namespace, branch)
    clients.objects(mirror.region).put(uri, json.dumps(body, indent=1).encode())
    _note_uncertified(mirror, branch, lease)  # the manager may have written it in between


def retire_if_deleted(mirror: Mirror, branch: str, lease: Lease) -> None:
    """After the row of a branch has gone, and after a certificate was written: the manager may have written one between
    its retirement and the deletion, and whoever of the two comes second finds that."""
    if not mirror.branches.filter(name=branch, stray=False).exists():
        retire_certificate(mirror, branch, lease)


def retire_all(mirror: Mirror, lease: Lease) -> None:
    """Before a repository is filled again: no certificate tells of it, and its branches may be gone at the source by
    then. What the store refuses holds up nothing."""
    for branch in mirror.branches.filter(stray=False).values_list("name", flat=True):
        lease.renew()
        try:
            retire_certificate(mirror, branch, lease)
        except Fenced:
            raise
        except LakeMirrorError as error:
            log.warning("%s: the certificate of %s is not retired: %s", mirror.name, branch, error)


def _is_live(mirror: Mirror, branch: str) -> bool:
    """Whether there is one that was not retired; a damaged one may be read otherwise by others."""
    try:
        return read_certificate(mirror.region, mirror.storage_namespace, branch) is not None
    except Invalid:
        return True


def _note_uncertified(mirror: Mirror, branch: str, lease: Lease) -> None:
    with lease.transaction():
        mirror.branches.filter(name=branch).update(certified="")


def keep(mirror: Mirror, lease: Lease) -> None:
    """Bring descriptor and certificates at the destination up to what the books say.

    Each of these files is tried, whatever the store refuses, and the first refusal raised at the end: the manager tries
    again.
    """
    failed: LakeMirrorError | None = None
    certificates = [partial(_write_certificate, mirror, branch, lease) for branch in _uncertified(mirror)]
    for write in (partial(_write_descriptor, mirror), *certificates):
        try:
            write()
        except Fenced:
            raise
        except LakeMirrorError as error:
            failed = failed or error
    if failed is not None:
        raise failed


def _uncertified(mirror: Mirror) -> list[MirrorBranch]:
    """Branches that stand at a candidate of theirs which their certificate does not tell of. It proves that the
    source's branch was there: nothing of where somebody else has put one."""
    ours = mirror.branches.filter(position__gte=0, stray=False, misplaced=False)
    return list(ours.exclude(certified=F("head")))


def _write_certificate(mirror: Mirror, branch: MirrorBranch, lease: Lease) -> None:
    commit = mirror.source.commits.filter(sha=branch.head).first()
    if commit is None:
        return
    try:
        made = certify(mirror, commit)
    except NotFound:
        return
    about = {"branch": branch.name, "at": clock.now().isoformat(), "ran_by": HOLDER, "waivers": told_waivers(mirror)}
    data = json.dumps(made.document(**about), indent=1).encode()
    lease.fence(PUT_SECONDS)
    try:
        clients.objects(mirror.region).put(certificate_uri(mirror.storage_namespace, branch.name), data)
    finally:  # whatever the store answers: it may have taken it
        retire_if_deleted(mirror, branch.name, lease)
    with lease.transaction():
        rows = mirror.branches.filter(mirror__store=mirror.store)  # another one has no certificate yet
        rows.filter(pk=branch.pk, head=commit.sha).update(certified=commit.sha)
