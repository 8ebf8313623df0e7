"""Which duties are about a mirror, and which about a source repository."""

from __future__ import annotations

from typing import Any

from django.db.models import Q

from jobs.models import Duty

OF_A_MIRROR = (Duty.Kind.MANAGE, Duty.Kind.COPY, Duty.Kind.VALIDATE, Duty.Kind.PROMOTE)
OF_A_SOURCE = (Duty.Kind.SENSE,)


def duties_about(mirrors: Any, sources: Any) -> Q:
    """The duties of mirrors and of source repositories; each given as keys, or as a query of keys."""
    return Q(kind__in=OF_A_MIRROR, subject__in=mirrors) | Q(kind__in=OF_A_SOURCE, subject__in=sources)
