"""What is asked of the tables of exports, under the names that the rest of the code uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import models


class ExportQuerySet(models.QuerySet):
    def named(self, region: str, repository: str, branch: str, name: str) -> ExportQuerySet:
        """The export of a branch that has this name, or "" for none: one, or none."""
        return self.filter(region=region, repository=repository, branch=branch, name=name)

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
