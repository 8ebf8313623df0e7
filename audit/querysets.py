"""The audit can be read and added to, nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from django.db import models

if TYPE_CHECKING:
    from audit.models import AuditEvent  # noqa: F401


class AppendOnly(TypeError):
    """A programmer's mistake: something tried to change or remove an audit event."""


class AuditEventQuerySet(models.QuerySet["AuditEvent"]):
    """The audit can be read and added to, nothing else."""

    def update(self, **kwargs: Any) -> NoReturn:
        raise AppendOnly("audit events can't be changed")

    def delete(self) -> NoReturn:
        raise AppendOnly("audit events can't be deleted")

    def bulk_update(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise AppendOnly("audit events can't be changed")
