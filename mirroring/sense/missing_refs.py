"""Branches and tags that the source lists no more: which of them count as deleted?"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db import models

from core.mirroring import source_moves
from db.chunks import chunks
from mirrors.models import SourceBranch, SourceTag


def note_missing(
    refs: models.QuerySet[SourceBranch] | models.QuerySet[SourceTag], listed: Collection[str], at: datetime
) -> bool:
    """Count looks without a source's branches, or its tags; true when one is now taken for deleted."""
    absent = refs.filter(missing_looks__gt=0).values_list("pk", "name")
    for some in chunks([pk for pk, name in absent if name in listed]):
        refs.filter(pk__in=some).update(missing_since=None, missing_looks=0)
    names = refs.filter(gone_at=None).values_list("name", flat=True)
    any_deleted = False
    for some in chunks(sorted(set(names) - set(listed))):
        for ref in refs.filter(name__in=some, gone_at=None):
            since, looks = ref.missing_since or at, ref.missing_looks + 1
            deleted = source_moves.is_gone(looks=looks, seconds=(at - since).total_seconds())
            any_deleted |= deleted
            noted = {"missing_since": since, "missing_looks": looks, "gone_at": at if deleted else None}
            refs.filter(pk=ref.pk).update(**noted)
    return any_deleted
