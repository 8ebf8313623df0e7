"""What can be done with the units of an export by Spark, as one value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.exporting.unit_values import Phase, UnitWork
from spark_jobs.export.copy import copy
from spark_jobs.export.diff import diff
from spark_jobs.export.settings import ExportSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class ExportJob:
    """Units are planned, or worked on in a phase."""

    settings: ExportSettings
    phase: Phase | None = None

    def __call__(self, session: SparkSession, work: Sequence[UnitWork]) -> DataFrame:
        """Rows of DIFF_COLUMNS, or of COPY_COLUMNS."""
        if self.phase is None:
            return diff(session, work, self.settings)
        return copy(session, work, self.settings, self.phase)
