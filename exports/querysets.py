"""What is asked of the tables of exports, under the names that the rest of the code uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import models

from core.errors import NotFound


class ExportQuerySet(models.QuerySet):
    def named(self, region: str, repository: str, branch: str, name: str) -> ExportQuerySet:
        """The export of a branch that has this name, or "" for none: one, or none."""
        return self.filter(region=region, repository=repository, branch=branch, name=name)

    def held(self, pk: int) -> Any:
        """The export of this key, which nobody else changes before the transaction ends. Raises NotFound for one that
        was deleted since it was read, or is just being deleted."""
        export = self.select_for_update().filter(pk=pk, deleting=False).first()
        if export is None:
            raise NotFound("the export has been deleted", hint="Create it again to export the branch")
        return export

    def move(self, pk: int, *, states: Sequence[str], **values: Any) -> bool:
        """Change an export if it is in one of these states; of several at once one wins."""
        return self.filter(pk=pk, state__in=states).update(**values) == 1


class RunQuerySet(models.QuerySet):
    def open(self) -> RunQuerySet:
        """Those that go on."""
        return self.filter(ended_at=None)


class VerificationQuerySet(RunQuerySet):
    def telling(self) -> VerificationQuerySet:
        """Those that came to an answer, and those that were broken off after they had found something amiss: that is
        so until an answer says otherwise."""
        amiss = models.Q(missing__gt=0) | models.Q(different__gt=0)
        return self.exclude(ended_at=None).filter(amiss | models.Q(outcome__in=["equal", "drifted"]))
