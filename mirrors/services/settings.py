"""The settings of a mirror that may be changed, and what follows when one is.

A setting is declared in three places: its column in `Mirror`, its field in `serializers.MirrorSettings`, its line here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from functools import partial
from typing import Any

from django.db import transaction

from audit.verbs import Verb
from core import labels
from core.access.policies import Right
from core.bringing import ObjectReplication
from core.errors import Conflict, Invalid
from core.mirroring.branch_selection import OnUnselect
from core.pauses import ENDED, STATED, columns_of, recorded
from core.sweeping import check_can_follow
from db import clock
from jobs import duties
from mirrors.models import Mirror, MirrorDuty, Sweep
from mirrors.models.sweep import OPEN
from mirrors.services.mirrors import mirror_lock
from mirrors.services.rights import require_change, require_operation
from mirrors.services.settings_etag import etag_of
from mirrors.transitions.duties import follow_collection
from mirrors.transitions.selection import reselect, start_or_end_tags, whole_selection
from mirrors.transitions.validity import invalidate_for_settings
from rbac import services as rbac
from web.etags import ANYTHING, Seen

COPYING = frozenset({"copying_paused", "copy_workers", "copy_bytes_per_second", "copy_objects_per_second"})
"""Settings that are also changed by who may run a mirror, while it copies."""
Follow = Callable[[Mirror, Mirror], None]
"""What a change entails, in its transaction: the mirror as it was, and as it is."""


def mirror_update(
    *,
    actor: Any,
    mirror: Mirror,
    changes: Mapping[str, Any],
    on_unselect: OnUnselect = OnUnselect.KEEP,
    seen: Seen = ANYTHING,
    steers: bool = False,
) -> Mirror:
    """Change settings of a mirror, named by their columns; gives it as it is then. What is so already is no change.

    A change to `paused` may say why, and until when: `pause_reason`, `paused_until`. `on_unselect` says what becomes of
    branches that are there, and are `selected` no more by this very change. `steers`: copying alone, see `_right`.
    Raises Denied, NotFound (it is being deleted), Stale (not as it was `seen`) and Invalid (no such setting).
    """
    right = _right(actor, mirror, changes, steers=steers)
    known = {*SETTINGS, *(STATED if changes.get("paused") else ())}
    if unknown := sorted(changes.keys() - known):
        raise Invalid(f"a mirror has no setting '{unknown[0]}' that can be changed", field=unknown[0])
    labels.check(changes.get("labels", {}))
    with transaction.atomic():
        old = mirror_lock(mirror)
        seen.require(etag_of(old), old.name)
        whole = _with_collection(_with_pause(changes, old, actor), old)
        changes = whole_selection(whole, old.selected, old.source.default_branch)
        before = {column: getattr(old, column) for column in changes if getattr(old, column) != changes[column]}
        if not (after := {column: changes[column] for column in before}):
            return old
        new = _store(old, after)
        follows = {**dict.fromkeys(ENDED, _move_on), **SETTINGS, "selected": partial(reselect, on_unselect=on_unselect)}
        for follow in dict.fromkeys(follows[column] for column in after):
            follow(old, new)
        duties.wake(MirrorDuty.MANAGE, old.pk)  # which writes the descriptor
        rbac.audit(
            actor=actor,
            right=right,
            verb=_verb(after),
            subject=old.audit_name,
            before={"mirror": old.name, **recorded(before)},
            after={"mirror": old.name, **recorded(after)},
            reason=after.get("pause_reason", ""),
        )
    return new


def _right(actor: Any, mirror: Mirror, changes: Mapping[str, Any], *, steers: bool) -> Right:
    """That to run the mirror for a pause, and where somebody `steers` its copying; else that to change it."""
    pauses = "paused" in changes and changes.keys() <= {"paused", *STATED}
    operates = pauses or (steers and changes.keys() <= COPYING)
    return require_operation(actor, mirror) if operates else require_change(actor, mirror)


def copying_update(*, actor: Any, mirror: Mirror, changes: Mapping[str, Any]) -> Mirror:
    """Pause, resume or limit the copying of a mirror's objects, also while it goes on; `changes` are of COPYING.

    Raises what `mirror_update` does, and Conflict where the stores copy them.
    """
    require_operation(actor, mirror)
    if mirror.object_replication != ObjectReplication.MANAGED:
        hint = "Choose managed replication, or pause the rule of the stores"
        raise Conflict(f"LakeMirror does not copy the objects of '{mirror.name}': the stores do", hint=hint)
    return mirror_update(actor=actor, mirror=mirror, changes=changes, steers=True)


def _with_pause(changes: Mapping[str, Any], old: Mirror, actor: Any) -> Mapping[str, Any]:
    """With all columns of a pause that begins, goes on otherwise, or ends."""
    if "paused" not in changes:
        return changes
    stated = {column: changes[column] for column in STATED if column in changes}
    if not changes["paused"]:
        return {**changes, **ENDED}
    return {**changes, **columns_of(old.pause, stated, by=str(actor), now=clock.now())}


def _with_collection(changes: Mapping[str, Any], old: Mirror) -> Mapping[str, Any]:
    """Whoever has the stores copy objects ends with it that LakeMirror follows the garbage collection. Raises
    Invalid."""
    after = {name: changes.get(name, getattr(old, name)) for name in ("object_replication", "follow_gc")}
    if changes.get("follow_gc"):
        check_can_follow(after)
    ends = after["follow_gc"] and after["object_replication"] != ObjectReplication.MANAGED
    return {**changes, "follow_gc": False} if ends else changes


def _verb(after: Mapping[str, Any]) -> Verb:
    if "paused" in after and after.keys() <= ENDED.keys():
        return Verb.PAUSE if after["paused"] else Verb.RESUME
    return Verb.CHANGE


def _store(old: Mirror, after: Mapping[str, Any]) -> Mirror:
    new = copy(old)
    for column, value in after.items():
        setattr(new, column, value)
    new.save(update_fields=list(after))
    return new


# --- what follows -----------------------------------------------------------------------------------------------------


def _move_on(old: Mirror, new: Mirror) -> None:
    """After a pause each branch goes straight to its newest complete commit."""
    if not new.paused:
        duties.wake(MirrorDuty.PROMOTE, new.pk)


def _infer(old: Mirror, new: Mirror) -> None:
    """The look at the source stores what is inferred, or forgets it."""
    duties.wake(MirrorDuty.SENSE, new.source_id)
    duties.wake(MirrorDuty.PROMOTE, new.pk)


def _look_for_tampering(old: Mirror, new: Mirror) -> None:
    """What is known to be there is undone, or told, in the next round."""
    new.branches.filter(uncommitted=True).update(looked_at=None)
    duties.wake(MirrorDuty.PROMOTE, new.pk)


def _measure(old: Mirror, new: Mirror) -> None:
    """Which branches are too late by the new target is noted in the next round."""
    duties.wake(MirrorDuty.PROMOTE, new.pk)


def _nothing(old: Mirror, new: Mirror) -> None:
    """For people alone."""


def _bring(old: Mirror, new: Mirror) -> None:
    """What is missing is looked for at once, and brought by who brings it now."""
    new.blockers.update(look_at=clock.now())
    duties.wake(MirrorDuty.VALIDATE, new.pk)


def _hold(old: Mirror, new: Mirror) -> None:
    """From when on a head without a release is told."""
    if bool(old.hold) != bool(new.hold):
        new.held_since = clock.now() if new.hold else None
        new.save(update_fields=["held_since"])
    duties.wake(MirrorDuty.SENSE, new.source_id)


def _sweep(old: Mirror, new: Mirror) -> None:
    """Sweeps begin, or nothing more comes of the one that goes on. Rows are kept then for what branches lead to, and
    for nothing else."""
    follow_collection(new)
    if not new.follow_gc:
        now = clock.now()
        new.sweeps.filter(state__in=OPEN).update(
            state=Sweep.State.ENDED, reason="garbage collection is no longer followed", ended_at=now
        )
        return
    new.follows_all = False
    new.save(update_fields=["follows_all"])
    duties.wake(MirrorDuty.SWEEP, new.pk)


SETTINGS: Mapping[str, Follow] = {
    "paused": _move_on,
    "depth": invalidate_for_settings,
    "content_sample": invalidate_for_settings,
    "imported": invalidate_for_settings,
    "first_sync": _infer,
    "repair_tampering": _look_for_tampering,
    "selected": reselect,
    "tags": start_or_end_tags,
    "rpo_seconds": _measure,
    "hold": _hold,
    "object_replication": _bring,
    "copying_paused": _bring,
    "copy_workers": _bring,
    "copy_bytes_per_second": _bring,
    "copy_objects_per_second": _bring,
    "branch_priority": _bring,
    "follow_gc": _sweep,
    "delete_percent": _nothing,
    "delete_most": _nothing,
    "labels": _nothing,
}
"""By column."""
