"""What follows when the branches of a mirror are selected anew, or its tags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import Q

from core.mirroring.branch_selection import OnUnselect, Selection, check_selection
from core.mirroring.promotion import MOVED_BY_OTHERS
from db import clock
from db.chunks import chunks
from jobs import duties
from mirrors.models import Mirror, MirrorBranch, MirrorDuty, MirrorTag, MoveIntent, Promotion, Repository


def whole_selection(
    settings: Mapping[str, Any], now: Mapping[str, list[str]], default_branch: str
) -> Mapping[str, Any]:
    """Settings with the selection as a whole: what of it was not given stays as it is. Raises Invalid."""
    if "selected" not in settings:
        return settings
    whole = {"include": now["include"], "exclude": now["exclude"]} | settings["selected"]
    check_selection(Selection(default_branch, tuple(whole["include"]), tuple(whole["exclude"])))
    return {**settings, "selected": whole}


def reselect(old: Mirror, new: Mirror, on_unselect: OnUnselect = OnUnselect.KEEP) -> None:
    """In the transaction that changes the selection. `on_unselect` is for what was selected and is no more.

    A branch that is selected again goes on from where it is, also when it was to be deleted and is still there.
    """
    was, is_ = old.selection, new.selection
    names = list(new.branches.filter(stray=False).values_list("pk", "name", "delete_asked"))
    begun = list(new.intents.filter(is_tag=False).exclude(to_commit="").values_list("pk", "name"))
    back = [pk for pk, name, to_delete in names if to_delete and name in is_]
    unselected = [pk for pk, name, _ in names if name in was and name not in is_]
    _ask(MirrorBranch, back, delete=False)
    _ask(MoveIntent, [pk for pk, name in begun if name in is_], delete=False)
    if on_unselect is OnUnselect.DELETE:
        _ask(MirrorBranch, unselected, delete=True)
        # One may have been made, or be made yet, without having been noted.
        _ask(MoveIntent, [pk for pk, name in begun if name in was and name not in is_], delete=True)
    new.follows_all, new.reselected = old.follows_all and is_.everything, True
    Mirror.objects.filter(pk=new.pk).update(follows_all=new.follows_all, reselected=True)
    for kind in (MirrorDuty.MANAGE, MirrorDuty.VALIDATE, MirrorDuty.PROMOTE):
        duties.wake(kind, new.pk)


def start_or_end_tags(old: Mirror, new: Mirror) -> None:
    """In the transaction that changes whether tags are followed. Those that were made stay at the mirror."""
    if new.tags:
        if not new.source.mirrors.exclude(pk=new.pk).filter(tags=True).exists():
            _forget_tags(new.source)
        new.intents.filter(is_tag=True).update(
            at=clock.now()
        )  # they are needed until it was looked what became of them
        duties.wake(MirrorDuty.SENSE, new.source_id)
    else:
        new.follows_all, new.reselected = False, True
        Mirror.objects.filter(pk=new.pk).update(follows_all=False, reselected=True)
    for kind in (MirrorDuty.MANAGE, MirrorDuty.VALIDATE, MirrorDuty.PROMOTE):
        duties.wake(kind, new.pk)


def _forget_tags(source: Repository) -> None:
    """Nobody has looked at them for a while. Those that a mirror made may be gone by now, and those that it deleted be
    back there with a backup: looks have to find that."""
    made = MirrorTag.objects.filter(mirror__source=source, stray=False).values("name")
    begun = MoveIntent.objects.filter(mirror__source=source, is_tag=True).exclude(to_commit="").values("name")
    moves = Promotion.objects.filter(mirror__source=source, is_tag=True).exclude(why__in=MOVED_BY_OTHERS)
    source.tags.exclude(Q(name__in=made) | Q(name__in=begun) | Q(name__in=moves.values("branch"))).delete()
    source.tags.update(commit_id="", unread_commit="", missing_since=None, missing_looks=0, gone_at=None)


def _ask(of: type[MirrorBranch | MoveIntent], keys: list[int], *, delete: bool) -> None:
    for some in chunks(keys):
        of.objects.filter(pk__in=some).update(delete_asked=delete)
