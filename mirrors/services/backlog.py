"""What a mirror lacks, as people ask for it: by commit, branch, reason or path, counted, looked for at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Substr

from audit.verbs import Verb
from core.errors import NotFound
from db import clock
from jobs import duties
from mirrors.models import Blocker, Mirror, MirrorDuty
from mirrors.queries.find_commit import find_commit
from mirrors.queries.missing import holders_blocking
from mirrors.queries.missing_counts import COUNTED
from mirrors.services.mirrors import repository_arn
from mirrors.transitions.blockers import LOOKED_FOR
from rbac import services as rbac


def blockers_of(
    mirror: Mirror, *, commit: str = "", branch: str = "", reason: str = "", kind: str = "", prefix: str = ""
) -> QuerySet[Blocker]:
    """What is missing or wrong at a mirror and fits all that is given.

    `commit`: what keeps it from being promoted; `branch`: the same of the newest commit that it is known to have
    pointed to. Raises NotFound, and for a commit whatever `find_commit` does.
    """
    rows = mirror.blockers.needed()
    if commit:
        rows = rows.held_by(holders_blocking(mirror, find_commit(mirror, commit).sha))
    if branch:
        rows = rows.held_by(holders_blocking(mirror, _head_of(mirror, branch)))
    if prefix:
        # Not startswith, which SQLite answers without regard to case.
        rows = rows.alias(beginning=Substr("path", 1, len(prefix))).filter(beginning=prefix)
    exactly = {"reason": reason, "kind": kind}
    return rows.filter(**{name: value for name, value in exactly.items() if value})


def _head_of(mirror: Mirror, branch: str) -> str:
    head = mirror.source.branches.filter(name=branch, gone_at=None).values_list("head", flat=True).first()
    if head is None:
        raise NotFound(f"'{mirror.source.name}' has no branch '{branch[:80]}'")
    return head


@dataclass(frozen=True, slots=True)
class Group:
    """Things that have something in common: how many, and when the first of them was seen."""

    group: str | None
    blockers: int
    oldest: datetime


class Looked:
    """What a look at the first COUNTED things tells of all of them: `total` of them at least, if there are `more`."""

    def __init__(self, rows: QuerySet[Blocker]) -> None:
        first_rows = list(rows.order_by("pk").values_list("reason", "path", "first_seen")[: COUNTED + 1])
        self.more = len(first_rows) > COUNTED
        self._rows = first_rows[:COUNTED]
        self.total = len(self._rows)

    def by_reason(self) -> list[Group]:
        """Groups, the largest first."""
        return _grouped((reason, seen) for reason, _, seen in self._rows)

    def by_prefix(self, below: str = "") -> list[Group]:
        """The same by what their paths have up to the first `/` after `below`; None: things without a path."""
        return _grouped((_folder(path, below), seen) for _, path, seen in self._rows)


def _folder(path: str, below: str) -> str | None:
    return path[: path.find("/", len(below)) + 1] or below if path else None


def _grouped(rows: Iterable[tuple[str | None, datetime]]) -> list[Group]:
    times: dict[str | None, list[datetime]] = defaultdict(list)
    for group, seen in rows:
        times[group].append(seen)
    groups = [Group(group, len(seen), min(seen)) for group, seen in times.items()]
    return sorted(groups, key=lambda entry: (-entry.blockers, entry.group is not None, entry.group or ""))


def blockers_retry(
    *, actor: Any, mirror: Mirror, ids: Sequence[int] | None = None, reason: str = "", commit: str = ""
) -> int:
    """Have things looked for at once: those of these ids, of this reason, that keep a commit back, or all; how many.

    Ids of what has arrived meanwhile are nobody's any more. A commit's record that was refused is never looked for.
    """
    right = ("fs:OperateMirror", repository_arn(mirror.source.name))
    rbac.require(actor, right)
    rows = blockers_of(mirror, commit=commit).filter(kind__in=LOOKED_FOR)
    if ids is not None:
        rows = rows.filter(pk__in=ids)
    if reason:
        rows = rows.filter(reason=reason)
    number = rows.update(look_at=clock.now())
    duties.wake(MirrorDuty.VALIDATE, mirror.pk)
    which = {"ids": ids and list(ids), "reason": reason, "commit": commit}
    chosen = {name: value for name, value in which.items() if value not in (None, "")} or {"all": True}
    after = {"retry_blockers": chosen, "mirror": mirror.name, "blockers": number}
    rbac.audit(actor=actor, right=right, verb=Verb.RETRY, subject=mirror.audit_name, after=after)
    return number
