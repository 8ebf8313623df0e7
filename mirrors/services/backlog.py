"""What a mirror lacks, as people ask for it: by commit, branch, reason or path, counted, looked for at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet

from audit.verbs import Verb
from core.bringing import ObjectReplication
from core.errors import Conflict, LakeMirrorError
from core.mirroring.facts import ARRIVING
from core.mirroring.object_check import WAIVABLE, address_hash
from db import clock
from deployment.wiring import clients
from jobs import duties
from mirrors.models import Blocker, Mirror, MirrorCommit, MirrorDuty
from mirrors.models.querysets import UNCHECKED
from mirrors.queries.missing import OPEN_COMMITS, blockers_of
from mirrors.queries.missing_counts import COUNTED
from mirrors.services.mirrors import mirror_lock
from mirrors.services.rights import require_operation
from mirrors.transitions import bringing
from mirrors.transitions.blockers import LOOKED_FOR
from mirrors.transitions.causes import awaited, wrong
from rbac import services as rbac

_IS_WAIVED = ExpressionWrapper(
    Q(waived=True, gone_at_source=False, reason__in=sorted(WAIVABLE)), output_field=BooleanField()
)
_GONE = Q(data=MirrorCommit.Data.GONE)


@dataclass(frozen=True, slots=True)
class Group:
    """Things that have something in common: how many, and when the first of them was seen."""

    group: str | None
    blockers: int
    oldest: datetime


@dataclass(frozen=True, slots=True)
class Held:
    """A commit that lacks something: `data` as the API has it, and whether it is waived itself."""

    commit: str
    data: str
    waived: bool


class Looked:
    """What a look at the first COUNTED rows tells of all of them: `total` different things at least, if there are
    `more`. Several ranges may need one thing, with a row each: the first stands for it, `repeated` are the others. So
    many of the things are `waived`: nothing waits for them but the heads of branches."""

    def __init__(self, rows: QuerySet[Blocker]) -> None:
        fields = ("pk", "kind", "key", "holder_id", "reason", "path", "cause", "first_seen", _IS_WAIVED)
        first_rows = list(rows.order_by("pk").values_list(*fields)[: COUNTED + 1])
        self.more = len(first_rows) > COUNTED
        self.repeated: list[int] = []
        self.waived = 0
        self._rows: list[tuple[str, str, str | None, datetime]] = []
        self._holders: dict[tuple[str, str], set[str]] = defaultdict(set)
        for pk, kind, key, holder, reason, path, cause, seen, waived in first_rows[:COUNTED]:
            if (kind, key) in self._holders:
                self.repeated.append(pk)
            else:
                asked = reason in ARRIVING and not waived
                self._rows.append((reason, path, cause if asked and cause else None, seen))
                self.waived += waived
            self._holders[kind, key].add(holder)
        self.total = len(self._rows)

    def by_reason(self) -> list[Group]:
        """Groups, the largest first."""
        return _grouped((reason, seen) for reason, _, _, seen in self._rows)

    def by_cause(self) -> list[Group]:
        """The same by why the stores' replication has not brought them; None: it is not known, or nothing of that."""
        return _grouped((cause, seen) for _, _, cause, seen in self._rows)

    def by_prefix(self, below: str = "") -> list[Group]:
        """The same by what their paths have up to the first `/` after `below`; None: things without a path."""
        return _grouped((_folder(path, below), seen) for _, path, _, seen in self._rows)

    def holders_of(self, thing: Blocker) -> frozenset[str]:
        """Commits, metaranges or ranges that need it."""
        return frozenset(self._holders[thing.kind, thing.key])

    def commits_held(self, mirror: Mirror, things: Iterable[Blocker]) -> dict[int, int]:
        """By the key of its row, how many commits of the mirror lack a thing, among the last OPEN_COMMITS."""
        lacking = Lacking(mirror)
        return {thing.pk: len(lacking.commits(self.holders_of(thing))) for thing in things}


class Lacking:
    """The commits of a mirror that lack something, the newest first: the last OPEN_COMMITS of them. `more`: there are
    others."""

    def __init__(self, mirror: Mirror) -> None:
        rows = MirrorCommit.objects.filter(UNCHECKED | _GONE, mirror=mirror).order_by("-commit_id")
        fields = ("commit__sha", "data", "waiver_id", "commit__metarange_id", "waits_for")
        lines = list(rows.values_list(*fields)[: OPEN_COMMITS + 1])
        self.more = len(lines) > OPEN_COMMITS
        self._commits = [
            (Held(sha, data, waiver is not None), {sha, metarange, *needs})
            for sha, data, waiver, metarange, needs in lines[:OPEN_COMMITS]
        ]

    def commits(self, holders: Collection[str]) -> list[Held]:
        """Those that need one of these ranges or metaranges, or are one of these."""
        return [held for held, needs in self._commits if not needs.isdisjoint(holders)]


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
    rows = _chosen(mirror, reason, commit)
    rows = rows if ids is None else rows.filter(pk__in=ids)
    return _retry(actor, mirror, rows, ids=ids, reason=reason, commit=commit)


def things_retry(
    *, actor: Any, mirror: Mirror, ids: Sequence[int] | None = None, reason: str = "", commit: str = ""
) -> int:
    """The same for a page, which shows each thing once: it is looked for wherever it is needed. Gives how many."""
    rows = _chosen(mirror, reason, commit)
    if ids is not None:
        named = mirror.blockers.filter(pk__in=ids)
        rows = rows.filter(kind__in=named.values("kind"), key__in=named.values("key"))
    number = rows.order_by().values("kind", "key").distinct().count()
    _retry(actor, mirror, rows, ids=ids, reason=reason, commit=commit)
    return number


def _chosen(mirror: Mirror, reason: str, commit: str) -> QuerySet[Blocker]:
    rows = blockers_of(mirror, commit=commit).filter(kind__in=LOOKED_FOR)
    return rows.filter(reason=reason) if reason else rows


def _retry(actor: Any, mirror: Mirror, rows: QuerySet[Blocker], **which: Any) -> int:
    right = require_operation(actor, mirror)
    chosen = {name: value for name, value in which.items() if value not in (None, "")} or {"all": True}
    with transaction.atomic():
        mirror_lock(mirror)  # or a round that writes to the same rows in another order, and this, wait for each other
        number = rows.update(look_at=clock.now(), cause_at=None)
        for kind in (MirrorDuty.VALIDATE, MirrorDuty.MANAGE):
            duties.wake(kind, mirror.pk)
        after = {"retry_blockers": chosen, "mirror": mirror.name, "blockers": number}
        rbac.audit(actor=actor, right=right, verb=Verb.RETRY, subject=mirror.audit_name, after=after)
    return number


def files_bring(
    *,
    actor: Any,
    mirror: Mirror,
    ids: Sequence[int] | None = None,
    addresses: Sequence[str] | None = None,
    replace: bool = False,
) -> int:
    """Have LakeMirror copy once what the stores have not brought to a native mirror: these ids or addresses, or, with
    neither, all that is missing now; gives how many files are known to be.

    Only what a commit waits for is copied, and nothing that is there; or, to `replace` it, only what is there and wrong
    as far as is known now: the source's bytes are written over it where the source has what the commit says. Raises
    Denied; Conflict where LakeMirror copies the objects anyway, where nothing may be copied, and where the
    destination's store takes nothing from our key.
    """
    right = require_operation(actor, mirror)
    _require_bringing(mirror)
    rows = wrong(mirror) if replace else awaited(mirror)
    if ids is not None:
        named = mirror.blockers.filter(pk__in=ids)
        rows = rows.filter(kind__in=named.values("kind"), key__in=named.values("key"))
    if addresses is not None:
        rows = rows.filter(address_hash__in=[address_hash(address) for address in addresses])
    everything = ids is None and addresses is None and not replace
    which = {"ids": ids} if ids is not None else {"addresses": addresses} if addresses is not None else {"all": True}
    with transaction.atomic():
        mirror_lock(mirror)
        number = bringing.ask(mirror, rows, by=str(actor), replace=replace, everything=everything)
        duties.wake(MirrorDuty.VALIDATE, mirror.pk)
        after = {"replace" if replace else "bring": which, "mirror": mirror.name, "files": number}
        rbac.audit(actor=actor, right=right, verb=Verb.BRING, subject=mirror.audit_name, after=after)
    return number


def bringing_stop(*, actor: Any, mirror: Mirror) -> int:
    """End all that somebody asked LakeMirror to copy once: what is in flight is copied to its end, the rest is left to
    the stores. Gives how many files were still to be copied or replaced. Raises Denied."""
    right = require_operation(actor, mirror)
    with transaction.atomic():
        before = mirror_lock(mirror)
        number = bringing.stop(mirror)
        if number or before.bring_at or before.bring_all_at:
            after = {"mirror": mirror.name, "files": number}
            rbac.audit(actor=actor, right=right, verb=Verb.STOP_BRINGING, subject=mirror.audit_name, after=after)
    return number


def _require_bringing(mirror: Mirror) -> None:
    if mirror.object_replication == ObjectReplication.MANAGED:
        raise Conflict(f"LakeMirror copies the objects of '{mirror.name}' already")
    if not mirror.brings_on_request:
        raise Conflict(f"nothing is copied to '{mirror.name}' while it is paused, new or stopped, or its source frozen")
    try:
        clients.require_writable(mirror.region, mirror.namespace)
    except LakeMirrorError as error:
        raise Conflict(f"the store of {mirror.region} takes no object: {error.message}", hint=error.hint) from error
