"""Having a commit, a branch or all of a mirror checked; the validator carries it out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import IntegrityError, transaction

from audit.verbs import Verb
from core.errors import Conflict, NotFound
from core.mirroring.object_check import Depth
from db import clock
from db.chunks import chunks
from jobs import duties
from mirrors.models import Mirror, MirrorDuty, Validation
from mirrors.services.rights import require_operation
from rbac import services as rbac


def validation_ask(
    *, actor: Any, mirror: Mirror, commit: str = "", branch: str = "", depth: Depth | None = None
) -> Validation:
    """Have a commit checked, or a branch's head at the mirror, or without either all heads there.

    Gives the request that is open for the same already, if there is one. Raises Denied, NotFound (no such commit or
    branch) and Conflict (no head to look at).
    """
    right = require_operation(actor, mirror)
    made = _request(mirror, _heads(mirror, commit, branch), commit, branch, depth or Depth(mirror.depth))
    made.asked_by = actor if isinstance(actor, str) else actor.username
    validation = _store(made)
    duties.wake(MirrorDuty.VALIDATE, mirror.pk)
    after = {"validate": mirror.name, "what": made.what, "branch": branch, "commit": made.commit, "depth": made.depth}
    rbac.audit(actor=actor, right=right, verb=Verb.VALIDATE, subject=mirror.audit_name, after=after)
    return validation


def _heads(mirror: Mirror, commit: str, branch: str) -> dict[str, str]:
    """Commit ids with their metaranges."""
    branches = mirror.branches.filter(stray=False)
    if commit:
        wanted = {commit}
    elif branch:
        wanted = set(branches.filter(name=branch).values_list("head", flat=True))
    else:
        wanted = set(branches.values_list("head", flat=True))
    if branch and not wanted:
        raise NotFound(f"'{mirror.name}' has no branch '{branch[:80]}'")
    metaranges = _metaranges_of(mirror, wanted)
    if commit and not metaranges:
        raise NotFound(f"there is no known commit '{commit[:80]}' at '{mirror.name}'")
    if not metaranges:
        raise Conflict(f"'{mirror.name}' has no branch at a known commit yet: there is nothing to validate")
    return metaranges


def _metaranges_of(mirror: Mirror, shas: Iterable[str]) -> dict[str, str]:
    wanted = sorted(shas)
    metaranges: dict[str, str] = {}
    for some in chunks(wanted):
        rows = mirror.commits.filter(commit__repository=mirror.source_id, commit__sha__in=some).values_list(
            "commit__sha", "commit__metarange_id"
        )
        metaranges.update(rows)
    return metaranges


def _request(mirror: Mirror, heads: Mapping[str, str], commit: str, branch: str, depth: Depth) -> Validation:
    what = Validation.What.COMMIT if commit else Validation.What.BRANCH if branch else Validation.What.ALL
    identity = [what.value, branch, depth.value, sorted(heads)]
    return Validation(
        mirror=mirror,
        what=what,
        branch=branch,
        commit="" if what is Validation.What.ALL else next(iter(heads)),
        depth=depth.value,
        key=hashlib.sha256(json.dumps(identity).encode()).hexdigest(),
        metaranges=sorted({metarange_id for metarange_id in heads.values() if metarange_id}),
        asked_at=clock.now(),
    )


def _store(made: Validation) -> Validation:
    """Or the open one of the same key; one that ends in between is asked for anew."""
    for _ in range(3):
        same = Validation.objects.filter(mirror=made.mirror, key=made.key, ended_at=None).first()
        if same is not None:
            return same
        try:
            with transaction.atomic():
                made.save(force_insert=True)
            return made
        except IntegrityError:
            made.pk = None
    raise Conflict(f"'{made.mirror.name}' is being changed", hint="Try again in some seconds")
