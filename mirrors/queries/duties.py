"""Which duties are about a mirror, and which about a source repository."""

from __future__ import annotations

from typing import Any

from django.db.models import Q

from mirrors.models import MirrorDuty

OF_A_MIRROR = (MirrorDuty.MANAGE, MirrorDuty.COPY_RECORDS, MirrorDuty.VALIDATE, MirrorDuty.PROMOTE)
"""Those that each mirror has."""
ABOUT_A_MIRROR = (*OF_A_MIRROR, MirrorDuty.SWEEP)
"""With those that only some have."""
OF_A_SOURCE = (MirrorDuty.SENSE,)


def duties_about(mirrors: Any, sources: Any) -> Q:
    """The duties of mirrors and of source repositories; each given as keys, or as a query of keys."""
    return Q(kind__in=ABOUT_A_MIRROR, subject__in=mirrors) | Q(kind__in=OF_A_SOURCE, subject__in=sources)
