"""The replication API: the labels of an export."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from exports.api.exports import OF_BRANCH, OfBranch, reading_of
from exports.api.serializers import ExportStatus, status_json
from exports.services import exports
from web.labels import Labels
from web.openapi import answers
from web.serializers import Body


class ExportLabels(Body):
    """The body: all labels of the export."""

    labels = Labels()


class Labelling(OfBranch):
    """What people call an export by."""

    @answers("Label an export", 200, ExportStatus, body=ExportLabels, query=OF_BRANCH, fails=[503])
    def post(self, request: Request, repository: str, branch: str) -> Response:
        """Replace its labels; nothing is exported for it. Needs fs:ExportConfig on the branch."""
        self.permitted(request, "fs:ExportConfig", repository, branch)
        body = ExportLabels(data=request.data)
        body.is_valid(raise_exception=True)
        export = self.find(request, "fs:ExportConfig", repository, branch)
        exports.export_label(actor=request.user, export=export, wanted=body.validated_data["labels"])
        export.refresh_from_db()
        return Response(status_json(reading_of(export)))
