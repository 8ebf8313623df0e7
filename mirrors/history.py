"""Whose history is in order at a mirror? Spread from parents to children."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Q

from mirrors.models import Mirror

_SOUND = Q(record="accepted", history=True, data__in=["complete", "gone"])


def settle_history(mirror: Mirror) -> int:
    """Mark the commits of which all ancestors are recorded and complete (or gone at both sides); gives how many.

    Commits are visited in the order of their keys, which is parents first.
    """
    with transaction.atomic():
        Mirror.objects.select_for_update().filter(pk=mirror.pk).first()
        return _settle(mirror)


def doubt_history(mirror: Mirror, commit_ids: list[int]) -> None:
    """These commits stand in question again, and so does whatever was built on them: settle it anew.

    Descendants have larger keys; that others are asked as well costs little. Inside of a transaction.
    """
    if commit_ids:
        Mirror.objects.select_for_update().filter(pk=mirror.pk).first()
        mirror.commits.filter(commit_id__gt=min(commit_ids), history=True).update(history=False)


def _settle(mirror: Mirror) -> int:
    open_rows = list(
        mirror.commits.filter(history=False)
        .order_by("commit_id")
        .values_list("pk", "commit__sha", "commit__parents", "record", "data")
    )
    sound = _sound_parents(mirror, {sha for _, _, parents, _, _ in open_rows for sha in parents})
    settled: list[int] = []
    for pk, sha, parents, record, data in open_rows:
        if sound.issuperset(parents):
            settled.append(pk)
            if record == "accepted" and data in ("complete", "gone"):
                sound.add(sha)
    for start in range(0, len(settled), 500):
        mirror.commits.filter(pk__in=settled[start : start + 500]).update(history=True)
    return len(settled)


def _sound_parents(mirror: Mirror, shas: set[str]) -> set[str]:
    asked = sorted(shas)
    sound: set[str] = set()
    for start in range(0, len(asked), 500):
        chunk = asked[start : start + 500]
        sound.update(mirror.commits.filter(_SOUND, commit__sha__in=chunk).values_list("commit__sha", flat=True))
    return sound
