"""The record of changes: who did what to which resource."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from audit.models import SUBJECT_LENGTH, AuditEvent
from audit.verbs import Verb
from web import requests


class Named(Protocol):
    """Whoever has a name: a user, as the audit knows one."""

    username: str


Actor = Named | str
"""Who does it: a user, or the name of one of our own parts, written `system:<part>`."""
Right = tuple[str, str]
"""An action and the ARN that it is done to."""


def audit(
    *,
    actor: Any,
    right: Right,
    verb: Verb,
    subject: str = "",
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    reason: str = "",
) -> AuditEvent:
    """Write down one change: who did what to which resource, and by which request, from where.

    `right` is the one that was asked for before it was done, so that what was refused and what was done are found
    together. `subject`: what it was done to, by kind and name (`mirror/lake-eu`); by default what the ARN ends with.
    """
    action, arn = right
    return AuditEvent.objects.create(
        actor=actor if isinstance(actor, str) else getattr(actor, "username", ""),
        key_id=getattr(actor, "acting_key_id", ""),
        action=action,
        arn=arn[:1400],
        verb=verb,
        subject=(subject or arn.rpartition(":")[2])[:SUBJECT_LENGTH],
        before=before,
        after=after,
        reason=reason[:1000],
        **requests.traces(),
    )
