"""Uploads in parts at an export's destination that were begun and not finished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing

from spark_jobs.export.settings import ExportSettings, copier_of


def unfinished(settings: ExportSettings) -> Mapping[bytes, Sequence[str]]:
    """Keys below the destination, each with its uploads."""
    with closing(copier_of(settings)) as copier:
        return copier.unfinished()


def abort(uploads: Mapping[bytes, Sequence[str]], settings: ExportSettings) -> None:
    """Gives them up."""
    with closing(copier_of(settings)) as copier:
        copier.abort(uploads)
