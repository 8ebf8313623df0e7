"""The destination's own files, kept by its mirror's manager: written when they differ from the books, until the store
takes them."""

from __future__ import annotations

import hashlib
import json

from django.db import transaction
from django.db.models import F

from adapters.s3.store import CONNECT_SECONDS, READ_SECONDS
from core.errors import Fenced, LakeMirrorError, NotFound
from db import clock
from deployment.wiring import clients
from jobs.lease import HOLDER, Lease
from mirrors.models import Mirror, MirrorBranch
from mirrors.queries.certificates import DESCRIPTOR, certificate_uri, certify, describe, descriptor_bytes

PUT_SECONDS = CONNECT_SECONDS + READ_SECONDS


def write_descriptor(mirror: Mirror) -> None:
    """Put a mirror's descriptor at its destination, unless this very text was put there before."""
    data = descriptor_bytes(describe(mirror))
    digest = hashlib.sha256(data).hexdigest()
    if digest == mirror.described:
        return
    clients.objects(mirror.region).put(f"{mirror.storage_namespace}/{DESCRIPTOR}", data)
    Mirror.objects.filter(pk=mirror.pk).update(described=digest)


def retire_certificate(mirror: Mirror, branch: str, lease: Lease) -> None:
    """Before a branch is deleted: its certificate proves nothing of a branch that somebody may make under its name."""
    uri = certificate_uri(mirror.namespace, branch)
    store = clients.objects(mirror.region)
    if store.head(uri) is None:
        return
    body = {"branch": branch, "retired": True, "at": clock.now().isoformat()}
    _note_uncertified(mirror, branch, lease)  # first: nobody may hear that it was retired
    lease.fence(PUT_SECONDS)
    store.put(uri, json.dumps(body, indent=1).encode())
    _note_uncertified(mirror, branch, lease)  # the manager may have written it in between


def _note_uncertified(mirror: Mirror, branch: str, lease: Lease) -> None:
    with transaction.atomic():
        lease.lock()
        mirror.branches.filter(name=branch).update(certified="")


def keep(mirror: Mirror, lease: Lease) -> int:
    """Bring descriptor and certificates at the destination up to what the books say; gives the certificates written.

    What the store refuses is tried for each branch, and the first refusal raised at the end: the manager tries again.
    """
    write_descriptor(mirror)
    written, failed = 0, None
    for branch in _uncertified(mirror):
        try:
            written += _write_certificate(mirror, branch, lease)
        except Fenced:
            raise
        except LakeMirrorError as error:
            failed = failed or error
    if failed is not None:
        raise failed
    return written


def _uncertified(mirror: Mirror) -> list[MirrorBranch]:
    """Branches that stand at a candidate of theirs which their certificate does not tell of."""
    return list(mirror.branches.filter(position__gte=0, stray=False).exclude(certified=F("head")))


def _write_certificate(mirror: Mirror, branch: MirrorBranch, lease: Lease) -> int:
    commit = mirror.source.commits.filter(sha=branch.head).first()
    if commit is None:
        return 0
    try:
        made = certify(mirror, commit)
    except NotFound:
        return 0
    about = {"branch": branch.name, "at": clock.now().isoformat(), "ran_by": HOLDER}
    data = json.dumps(made.document(**about), indent=1).encode()
    lease.fence(PUT_SECONDS)
    clients.objects(mirror.region).put(certificate_uri(mirror.storage_namespace, branch.name), data)
    with transaction.atomic():
        lease.lock()
        mirror.branches.filter(pk=branch.pk, head=commit.sha).update(certified=commit.sha)
    return 1
