"""The API of verifications: does the destination hold what the last complete export brought?"""

from __future__ import annotations

from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from core.errors import NotFound
from db import clock
from db.chunks import rows_in_chunks
from exports.api.exports import OF_BRANCH, OfBranch
from exports.api.serializers import ExportRunAnswer, run_json
from exports.models import Export, ExportDrift, ExportVerification
from exports.services import exports
from web.csv_export import FORMATS, TableView, csv_answer, wants_csv
from web.openapi import answers
from web.paging import PAGE, by_number
from web.schemas import count_or_null, page_answer, text_or_null, time_or_null
from web.serializers import Body, TrueOrFalse, rfc3339

FORMAT = OpenApiParameter("format", str, enum=FORMATS, description="csv: all that are named, not a page, as a file")
COUNTS = ("equal", "equal_bytes", "missing", "different", "foreign", "named", "requests")
COLUMNS = ("path", "kind", "size", "etag", "there_size", "there_etag")


class VerificationAnswer(serializers.Serializer):
    """A verification: how far it is, or what it found."""

    id = serializers.CharField()
    ref = serializers.CharField(help_text="the commit that the destination should hold")
    path = serializers.CharField(help_text="the destination")
    asked_by = text_or_null()
    started_at = serializers.DateTimeField()
    ended_at = time_or_null()
    outcome = serializers.ChoiceField(
        ExportVerification.Outcome.choices, allow_null=True, help_text="null while it is running"
    )
    error = text_or_null()
    files = count_or_null()
    equal = serializers.IntegerField(help_text="files that are there as the commit has them; so far, as all counts")
    equal_bytes = serializers.IntegerField()
    missing = serializers.IntegerField()
    different = serializers.IntegerField()
    foreign = serializers.IntegerField(help_text="objects of which the commit knows nothing")
    named = serializers.IntegerField(help_text="so many of what drifted are in export-drift; others are counted only")
    requests = serializers.IntegerField()
    as_of = serializers.DateTimeField()


class DriftAnswer(serializers.Serializer):
    """A key that is not as the commit has it."""

    path = serializers.CharField()
    kind = serializers.ChoiceField(ExportDrift.Kind.choices)
    size = count_or_null()
    etag = text_or_null()
    there_size = count_or_null()
    there_etag = text_or_null()


class Verify(OfBranch):
    """Compare a destination with its commit."""

    tag = "verification"

    @answers("Verify an export", 202, VerificationAnswer, query=OF_BRANCH, fails=[503])
    def post(self, request: Request, repository: str, branch: str) -> Response:
        """Compare the destination with the commit of the last success; nothing is written there. 202 with the
        verification, of which export-verification tells more; one that goes on already is not begun anew. 409 while an
        export goes on, and before any has succeeded. Needs fs:RunExport on the branch."""
        export = self.find(request, "fs:RunExport", repository, branch)
        verification = exports.export_verify(actor=request.user, export=export)
        return Response(verification_json(verification), status=202)


class DriftRepair(Body):
    """What is repaired besides what is missing or different."""

    removeForeign = TrueOrFalse(
        required=False,
        default=False,
        help_text="also remove what is in no file of the commit, where this export brought it with an earlier one",
    )


class RepairDrift(OfBranch):
    """Bring again what drifted."""

    tag = "verification"

    @answers("Repair export drift", 202, ExportRunAnswer, body=DriftRepair, query=OF_BRANCH, fails=[503])
    def post(self, request: Request, repository: str, branch: str) -> Response:
        """Copy again what the last verification found missing or different, and replace what lies there instead. 202
        with the run, of which export-status tells more; a verification follows it. 409 while an export goes on, after a
        failure, and where nothing drifted. Needs fs:RunExport on the branch."""
        self.permitted(request, "fs:RunExport", repository, branch)
        body = DriftRepair(data=request.data)
        body.is_valid(raise_exception=True)
        export = self.find(request, "fs:RunExport", repository, branch)
        run = exports.export_repair_drift(
            actor=request.user, export=export, remove=body.validated_data["removeForeign"]
        )
        return Response(run_json(run), status=202)


class Verification(OfBranch):
    """The last verification."""

    tag = "verification"

    @answers("Get an export verification", 200, VerificationAnswer, query=OF_BRANCH, fails=[503])
    def get(self, request: Request, repository: str, branch: str) -> Response:
        """The last verification: how far it is, or what it found. 404 when nobody has asked for one. Needs
        fs:ReadBranch on the branch."""
        return Response(verification_json(last_verification(self.readable(request, repository, branch))))


class Drift(OfBranch, TableView):
    """What is not as it should be."""

    tag = "verification"

    @answers(
        "List export drift", 200, page_answer(DriftAnswer), query=[*PAGE, FORMAT, *OF_BRANCH], fails=[503], csv=True
    )
    def get(self, request: Request, repository: str, branch: str) -> HttpResponseBase:
        """A page of keys that the last verification found missing, different or foreign; or all that are named, as CSV.
        Needs fs:ReadBranch on the branch."""
        verification = last_verification(self.readable(request, repository, branch))
        if wants_csv(request):
            rows = map(drift_json, rows_in_chunks(verification.drift.all()))
            return csv_answer(f"{repository}-export-drift", COLUMNS, rows)
        return Response(by_number(request, verification.drift, drift_json, "pk", newest=False))


def last_verification(export: Export) -> ExportVerification:
    """The one that goes on, else the last one. Raises NotFound."""
    verification: ExportVerification | None = export.verifications.order_by("-pk").first()
    if verification is None:
        raise NotFound(
            f"the export of '{export.which}' has not been verified yet", hint="Start one: POST export-verify"
        )
    return verification


def verification_json(verification: ExportVerification) -> dict[str, Any]:
    """A verification and its figures."""
    return {
        "id": str(verification.pk),
        "ref": verification.ref,
        "path": verification.path,
        "asked_by": verification.asked_by or None,
        "started_at": rfc3339(verification.started_at),
        "ended_at": rfc3339(verification.ended_at),
        "outcome": verification.outcome or None,
        "error": verification.error or None,
        "files": verification.files if verification.cut else None,
        **{name: getattr(verification, name) for name in COUNTS},
        "as_of": rfc3339(clock.now()),
    }


def drift_json(drift: ExportDrift) -> dict[str, Any]:
    """A key; what of it is no UTF-8 is shown as \\xNN. What one side does not have is null."""
    return {
        "path": drift.name,
        "kind": drift.kind,
        "size": drift.size,
        "etag": drift.etag or None,
        "there_size": drift.there_size,
        "there_etag": drift.there_etag or None,
    }
