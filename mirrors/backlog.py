"""What a mirror lacks, as people ask for it: by commit, branch, reason or path, counted, looked for at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db.models import Case, Count, F, Min, QuerySet, Value, When
from django.db.models.functions import StrIndex, Substr

from core.errors import NotFound
from mirrors import clock, duties
from mirrors.finding import find_commit
from mirrors.lacking import holders_blocking
from mirrors.models import Blocker, Mirror
from mirrors.rechecks import LOOKED_FOR
from mirrors.services import repository_arn
from rbac import services as rbac

CHUNK = 2000


def blockers_of(
    mirror: Mirror, *, commit: str = "", branch: str = "", reason: str = "", kind: str = "", prefix: str = ""
) -> QuerySet[Blocker]:
    """What is missing or wrong at a mirror and fits all that is given.

    `commit`: what keeps it from being promoted; `branch`: the same of the newest commit that it is known to have
    pointed to. Raises NotFound, and for a commit whatever `find_commit` does.
    """
    rows = mirror.blockers.all()
    if commit:
        rows = rows.filter(holder_id__in=holders_blocking(mirror, find_commit(mirror, commit).sha))
    if branch:
        rows = rows.filter(holder_id__in=holders_blocking(mirror, _head_of(mirror, branch)))
    if prefix:
        # Not startswith, which SQLite answers without regard to case.
        rows = rows.alias(beginning=Substr("path", 1, len(prefix))).filter(beginning=prefix)
    exactly = {"reason": reason, "kind": kind}
    return rows.filter(**{name: value for name, value in exactly.items() if value})


def _head_of(mirror: Mirror, branch: str) -> str:
    found = mirror.source.branches.filter(name=branch, gone_at=None).values_list("head", flat=True).first()
    if found is None:
        raise NotFound(f"'{mirror.source.name}' has no branch '{branch[:80]}'")
    return found


def by_reason(rows: QuerySet[Blocker]) -> QuerySet[Blocker, Mapping[str, Any]]:
    """Rows of `group`, `blockers` and `oldest`, the largest group first."""
    return _grouped(rows.annotate(group=F("reason")))


def by_prefix(rows: QuerySet[Blocker], below: str = "") -> QuerySet[Blocker, Mapping[str, Any]]:
    """The same by what their paths have up to the first `/` after `below`; None: things without a path."""
    rest = Substr("path", len(below) + 1)
    folder = Substr("path", 1, Value(len(below)) + StrIndex(rest, Value("/")))
    return _grouped(rows.annotate(group=Case(When(path="", then=None), default=folder)))


def _grouped(rows: QuerySet[Blocker]) -> QuerySet[Blocker, Mapping[str, Any]]:
    groups = rows.order_by().values("group").annotate(blockers=Count("pk"), oldest=Min("first_seen"))
    return groups.order_by("-blockers", "group")


def in_chunks(rows: QuerySet[Blocker]) -> Iterator[Blocker]:
    """All of them in order of their keys, however many, without holding a cursor or all of them."""
    last = 0
    while True:
        chunk = list(rows.filter(pk__gt=last).order_by("pk")[:CHUNK])
        yield from chunk
        if len(chunk) < CHUNK:
            return
        last = chunk[-1].pk


def blockers_retry(
    *,
    actor: Any,
    mirror: Mirror,
    ids: Sequence[int] | None = None,
    reason: str = "",
    commit: str = "",
    request: Any = None,
) -> int:
    """Have things looked for at once: those of these ids, of this reason, that keep a commit back, or all; how many.

    Ids of what has arrived meanwhile are nobody's any more. A commit's record that was refused is never looked for.
    """
    arn = repository_arn(mirror.source.name)
    rbac.require(actor, ("fs:MirrorRepository", arn))
    rows = blockers_of(mirror, commit=commit).filter(kind__in=LOOKED_FOR)
    if ids is not None:
        rows = rows.filter(pk__in=ids)
    if reason:
        rows = rows.filter(reason=reason)
    number = rows.update(look_at=clock.now())
    duties.wake("validate", mirror.pk)
    which = {"ids": ids and list(ids), "reason": reason, "commit": commit}
    chosen = {name: value for name, value in which.items() if value not in (None, "")} or {"all": True}
    told = {"retry_blockers": chosen, "mirror": mirror.name, "blockers": number}
    rbac.audit(actor=actor, action="fs:MirrorRepository", arn=arn, after=told, request=request)
    return number
