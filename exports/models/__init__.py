"""The tables of exports: `export` (configuration and state), `runs`, `verification`."""

from exports.models.export import Export
from exports.models.runs import (
    ExportDirectory,
    ExportFailure,
    ExportManifest,
    ExportRun,
    ExportUnit,
    MarkedPlace,
    SkippedCommit,
)
from exports.models.verification import ExportDrift, ExportVerification, VerificationUnit

__all__ = [
    "Export",
    "ExportDirectory",
    "ExportDrift",
    "ExportFailure",
    "ExportManifest",
    "ExportRun",
    "ExportUnit",
    "ExportVerification",
    "MarkedPlace",
    "SkippedCommit",
    "VerificationUnit",
]
