"""What recurs for an export: one kind of work.

Its subjects are below zero: a version before this one takes every subject for a mirror's, and would delete the duty of
an export together with the mirror of the same key.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import Count

from deployment import config
from installations import services
from jobs import kinds
from jobs.kinds import DutyKind
from jobs.lease import DutyOutcome, Lease


def register() -> None:
    """Make the duty known to the loops that all duties share."""
    kinds.register(DutyKind("export", _advance, _interval, _needed, _concerned, heavy=True, label="Export"))
    services.register_user("export", _by_region)


def _advance(lease: Lease) -> DutyOutcome:
    from exports.engine.advance import advance

    return advance(lease)


def _interval() -> float:
    return config.current().commit_sensor.process_branches_duration.total_seconds()


def _needed(regions: list[str]) -> list[int]:
    """The subjects of the exports that these regions' deployment works for."""
    from exports.models import Export

    return [-pk for pk in Export.objects.filter(region__in=regions).values_list("pk", flat=True)]


def _by_region() -> Mapping[str, int]:
    """How many exports each region has."""
    from exports.models import Export

    return dict(Export.objects.order_by().values_list("region").annotate(number=Count("pk")))


def _concerned(region: str, repository: str) -> list[int]:
    """The subjects of the exports of a repository."""
    from exports.models import Export

    rows = Export.objects.filter(region=region, repository=repository, deleting=False)
    return [-pk for pk in rows.values_list("pk", flat=True)]
