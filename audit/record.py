"""The record of changes: who did what to which resource."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from audit.models import AuditEvent
from web import requests


class Named(Protocol):
    """Whoever has a name: a user, as the audit knows one."""

    username: str


Actor = Named | str
"""Who does it: a user, or the name of one of our own parts, written `system:<part>`."""


def audit(
    *,
    actor: Any,
    action: str,
    arn: str,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    reason: str = "",
    request: Any = None,
) -> AuditEvent:
    """Write down one change: who did what to which resource. `request` (Django's or DRF's) adds its id and address."""
    return AuditEvent.objects.create(
        actor=actor if isinstance(actor, str) else getattr(actor, "username", ""),
        key_id=getattr(actor, "acting_key_id", ""),
        action=action,
        arn=arn[:1400],
        before=before,
        after=after,
        reason=reason[:1000],
        request_id=requests.request_id(request),
        address=requests.address(request),
    )
