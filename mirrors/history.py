"""Whose history is in order at a mirror? Spread from parents to children."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.db.models import Q

from core.facts import serves_descendants
from mirrors.models import Mirror

BATCH = 1000

OpenRow = tuple[int, int, str, list[str], str, str, int | None]
"""Key, the commit's key, sha, parents, record, data, the key of its waiver."""

_MAY_SERVE = Q(data__in=["complete", "gone"]) | Q(waiver__isnull=False)
_SOUND = Q(_MAY_SERVE, record="accepted", history=True)


def settle_history(mirror: Mirror) -> int:
    """Mark the commits of which all ancestors are recorded and complete (or gone at both sides, or waived); how many?

    Commits are visited in the order of their keys, which is parents first, so many at a time: what an earlier batch
    settled is read back by the next one.
    """
    settled, last = 0, 0
    while True:
        with transaction.atomic():
            Mirror.objects.select_for_update().filter(pk=mirror.pk).first()
            rows = _open_rows(mirror, last)
            settled += _settle(mirror, rows)
        if len(rows) < BATCH:
            return settled
        last = rows[-1][1]


def doubt_history(mirror: Mirror, commit_ids: list[int]) -> None:
    """These commits stand in question again, and so does whatever was built on them: settle it anew.

    Descendants have larger keys; that others are asked as well costs little. Inside of a transaction.
    """
    if commit_ids:
        Mirror.objects.select_for_update().filter(pk=mirror.pk).first()
        mirror.commits.filter(commit_id__gt=min(commit_ids), history=True).update(history=False)


def _open_rows(mirror: Mirror, after: int) -> list[OpenRow]:
    rows = mirror.commits.filter(history=False, commit_id__gt=after).order_by("commit_id")
    names = ("pk", "commit_id", "commit__sha", "commit__parents", "record", "data", "waiver_id")
    return list(rows.values_list(*names)[:BATCH])


def _settle(mirror: Mirror, rows: Sequence[OpenRow]) -> int:
    sound = _sound_parents(mirror, {sha for _, _, _, parents, _, _, _ in rows for sha in parents})
    settled: list[int] = []
    for pk, _, sha, parents, record, data, waiver in rows:
        if sound.issuperset(parents):
            settled.append(pk)
            if serves_descendants(record=record, data=data, waived=waiver is not None):
                sound.add(sha)
    for start in range(0, len(settled), 500):
        mirror.commits.filter(pk__in=settled[start : start + 500]).update(history=True)
    return len(settled)


def _sound_parents(mirror: Mirror, shas: set[str]) -> set[str]:
    """With the source's key, so that a commit is found by its index."""
    asked = sorted(shas)
    sound: set[str] = set()
    for start in range(0, len(asked), 500):
        rows = mirror.commits.filter(
            _SOUND, commit__repository_id=mirror.source_id, commit__sha__in=asked[start : start + 500]
        )
        sound.update(rows.values_list("commit__sha", flat=True))
    return sound
