"""What is known to be wrong, and the mirror's own look might not find again: nothing but a read ends it."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q

from core.mirroring.object_check import Reason
from mirrors.models import Coverage
from mirrors.models.problem import FOUND_BY_READING


def only_read_ends() -> Q:
    """Blockers that stay as long as the store is the same: what reading found of an object, a metarange that can't be
    read (a HEAD finds it there), and what differs by a check that was deeper than the mirror's own."""
    deeper = Coverage.objects.filter(mirror=OuterRef("mirror"), range_id=OuterRef("holder_id")).found_deeper()
    by_reading = Q(reason__in=[*FOUND_BY_READING, Reason.METARANGE_UNREADABLE])
    return Q(must_read=True) | by_reading | Q(Exists(deeper), reason__in=[Reason.SIZE, Reason.ETAG])
