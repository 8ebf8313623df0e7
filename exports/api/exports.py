"""The API of exports, below /api/v1: by branch, as lakeFS once had it, and a list of them all."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.access.policies import branch_arn
from core.errors import NotFound
from core.exporting import explain
from core.exporting.names import SEPARATOR, parted
from db import clock
from db.chunks import rows_in_chunks
from db.labels import with_labels
from deployment import config
from deployment.wiring import region_settings
from exports.api.serializers import (
    ExportAnswer,
    ExportConfiguration,
    ExportFailureAnswer,
    ExportLimits,
    ExportRunAnswer,
    ExportSet,
    ExportStatus,
    SkippedCommitAnswer,
    configuration_json,
    failure_json,
    run_json,
    skipped_json,
    status_json,
)
from exports.api.status import WholeExportStatus, whole_status_json
from exports.models import Export, ExportFailure, SkippedCommit
from exports.services import destinations, exports
from exports.status.export import ExportSummary, export_statuses
from exports.status.failure_counts import REASONS
from rbac import services as rbac
from web.csv_export import FORMATS, TableView, csv_answer, wants_csv
from web.labels import LABEL, wanted_labels
from web.openapi import answers
from web.paging import PAGE, a_page, by_number, newest_first, number_of, one_of, page_of
from web.pauses import PauseTerms, stated_in
from web.schemas import page_answer

OF_BRANCH = (
    OpenApiParameter(
        "branch",
        str,
        OpenApiParameter.PATH,
        description="BRANCH: the export without a name. BRANCH:NAME: another export of the branch",
    ),
    OpenApiParameter("region", str, description="the region of the repository, if not the deployment's own"),
)

RUN = OpenApiParameter("run", str, description="only those of this run")
REASON = OpenApiParameter("reason", str, enum=REASONS, description="only those that failed for this reason")
FORMAT = OpenApiParameter("format", str, enum=FORMATS, description="csv: all rows as a file")
STATES = [state.value for state in explain.STATES]
STATE = OpenApiParameter("state", str, enum=STATES, description="only those in this state, as the pages say it")
FIND = OpenApiParameter("find", str, description="only those whose repository, branch, name or path contains this")


def region_of(request: Request) -> str:
    """The region of `{repository}`: this deployment's own, unless the query names another."""
    region = request.query_params.get("region") or config.current().region
    region_settings.require_lakefs(region)
    return region


class OfBranch(APIView):
    """What all calls about one branch share."""

    tag = "exports"

    def readable(self, request: Request, repository: str, branch: str) -> Export:
        """The export, for somebody who may read the branch."""
        return self.find(request, "fs:ReadBranch", repository, branch)

    def permitted(self, request: Request, action: str, repository: str, which: str) -> tuple[str, str]:
        """The branch and the name of the export that `which` says, for somebody who has this right on the branch."""
        rbac.require(request.user, (action, branch_arn(repository, which.partition(SEPARATOR)[0])))
        return parted(which)

    def find(self, request: Request, action: str, repository: str, which: str) -> Export:
        """The export, for somebody who has this right on the branch. Where there is none, NotFound names what is
        missing: repository, branch or configuration."""
        branch, name = self.permitted(request, action, repository, which)
        region = region_of(request)
        try:
            return exports.find_export(region, repository, branch, name)
        except NotFound:
            destinations.source_of(region, repository)
            destinations.check_branch(region, repository, branch)
            raise


EVERY_COMMIT = "The branch is exported now, and after each commit and merge from now on."
ONCE = 'The branch is exported once, as it is now. To export every later commit, set "isContinuous": true.'


class Configuration(OfBranch):
    """The configuration of a branch's export."""

    @answers("Get an export configuration", 200, ExportConfiguration, query=OF_BRANCH, fails=[503])
    def get(self, request: Request, repository: str, branch: str) -> Response:
        """How the branch is exported. Needs fs:ReadBranch on it."""
        return Response(configuration_json(self.readable(request, repository, branch)))

    @answers(
        "Set an export configuration", 201, ExportSet, body=ExportConfiguration, query=OF_BRANCH, fails=[409, 502, 503]
    )
    def put(self, request: Request, repository: str, branch: str) -> Response:
        """Replace the configuration, and export the branch's state of now. 201, and whether every commit is exported
        from now on. Needs fs:ExportConfig on it."""
        branch, name = self.permitted(request, "fs:ExportConfig", repository, branch)
        body = ExportConfiguration(data=request.data)
        body.is_valid(raise_exception=True)
        identity = {"region": region_of(request), "repository": repository, "branch": branch, "name": name}
        export, _ = exports.export_set(actor=request.user, **identity, wish=body.wish())
        return Response({"message": EVERY_COMMIT if export.continuous else ONCE}, status=201)

    @answers("Delete an export configuration", 204, query=OF_BRANCH, fails=[503])
    def delete(self, request: Request, repository: str, branch: str) -> Response:
        """Export no more; what was exported stays where it is. Needs fs:ExportConfig on the branch."""
        export = self.find(request, "fs:ExportConfig", repository, branch)
        exports.export_delete(actor=request.user, export=export)
        return Response(status=204)


class Hook(OfBranch):
    """Export a branch now."""

    @answers("Start an export", 201, OpenApiTypes.STR, query=OF_BRANCH, fails=[502, 503])
    def post(self, request: Request, repository: str, branch: str) -> Response:
        """Export the branch's head of now. 201 with the run's id; 409 while one goes on, after a failure (repair it),
        and where there is nothing to export. Needs fs:RunExport on the branch."""
        export = self.find(request, "fs:RunExport", repository, branch)
        return Response(str(exports.export_run(actor=request.user, export=export).pk), status=201)


class Repair(OfBranch):
    """Resume a failed export."""

    @answers("Repair an export", 201, query=OF_BRANCH, fails=[503])
    def post(self, request: Request, repository: str, branch: str) -> Response:
        """What kept the export from succeeding is repaired: it goes on. 201, empty; 409 unless it has failed. Needs
        fs:RunExport on the branch."""
        export = self.find(request, "fs:RunExport", repository, branch)
        exports.export_repair(actor=request.user, export=export)
        return Response(status=201)


class Status(OfBranch):
    """Where an export stands."""

    @answers("Get an export status", 200, WholeExportStatus, query=OF_BRANCH, fails=[503])
    def get(self, request: Request, repository: str, branch: str) -> Response:
        """All that its page says: state and reason, how far behind, the run that goes on or the last one step by step,
        failures by reason, status file, last verification. Needs fs:ReadBranch on the branch."""
        return Response(whole_status_json(reading_of(self.readable(request, repository, branch))))


class Runs(OfBranch):
    """The runs of an export."""

    @answers("List export runs", 200, page_answer(ExportRunAnswer), query=[*PAGE, *OF_BRANCH], fails=[503])
    def get(self, request: Request, repository: str, branch: str) -> Response:
        """A page of runs, the last one first. Needs fs:ReadBranch on the branch."""
        return Response(newest_first(request, self.readable(request, repository, branch).runs, run_json))


class Skipped(OfBranch):
    """Commits that no run exported by themselves."""

    @answers("List skipped commits", 200, page_answer(SkippedCommitAnswer), query=[*PAGE, RUN, *OF_BRANCH], fails=[503])
    def get(self, request: Request, repository: str, branch: str) -> Response:
        """A page of commits that landed while another one was exported, the last noted first, each with the run that
        exported a newer one instead. Needs fs:ReadBranch on the branch."""
        export = self.readable(request, repository, branch)
        rows = SkippedCommit.objects.filter(run__export=export).select_related("run")
        if given := request.query_params.get("run"):
            rows = rows.filter(run=number_of(given, "run"))
        return Response(newest_first(request, rows, skipped_json))


class Failures(OfBranch, TableView):
    """What a run could not do."""

    @answers(
        "List export failures",
        200,
        page_answer(ExportFailureAnswer),
        query=[*PAGE, RUN, REASON, FORMAT, *OF_BRANCH],
        fails=[503],
        csv=True,
    )
    def get(self, request: Request, repository: str, branch: str) -> HttpResponseBase:
        """A page of files that a run, the last one unless told, could not bring or remove; or all that are named, as
        CSV. Needs fs:ReadBranch on the branch."""
        rows = self._rows(request, self.readable(request, repository, branch))
        if wants_csv(request):
            columns = tuple(ExportFailureAnswer().fields)
            return csv_answer(f"{repository}-export-failures", columns, map(failure_json, rows_in_chunks(rows)))
        return Response(by_number(request, rows, failure_json, "pk", newest=False))

    @staticmethod
    def _rows(request: Request, export: Export) -> QuerySet[ExportFailure]:
        rows = ExportFailure.objects.filter(run__export=export)
        given, reason = request.query_params.get("run"), one_of(request, "reason", REASONS)
        rows = rows.filter(run=number_of(given, "run") if given else export.runs.order_by("-pk").first())
        return rows.filter(reason=reason) if reason else rows


class Pause(OfBranch):
    """Pause an export, or resume it."""

    @answers("Pause an export", 200, ExportStatus, body=PauseTerms, query=OF_BRANCH, fails=[503])
    def post(self, request: Request, repository: str, branch: str) -> Response:
        """Stop after what is being copied right now; nothing is lost. The body may say why, and until when it is meant:
        it does not end by itself, but an alert tells that it lasts for longer. Needs fs:PauseExport on the branch."""
        return self.change(request, repository, branch, paused=True)

    def change(self, request: Request, repository: str, branch: str, *, paused: bool) -> Response:
        export = self.find(request, "fs:PauseExport", repository, branch)
        stated = stated_in(request.data) if paused else None
        exports.export_pause(actor=request.user, export=export, paused=paused, stated=stated)
        export.refresh_from_db()
        return Response(status_json(reading_of(export)))


class Limits(OfBranch):
    """How fast an export may go."""

    @answers("Set export limits", 200, ExportConfiguration, body=ExportLimits, query=OF_BRANCH, fails=[503])
    def post(self, request: Request, repository: str, branch: str) -> Response:
        """Change the limits, also while a run goes on: it takes them up within moments. What is left out stays, null is
        no limit; nothing is exported for it. Needs fs:ExportConfig on the branch."""
        self.permitted(request, "fs:ExportConfig", repository, branch)
        body = ExportLimits(data=request.data)
        body.is_valid(raise_exception=True)
        export = self.find(request, "fs:ExportConfig", repository, branch)
        exports.export_limits(actor=request.user, export=export, changes=body.changes())
        export.refresh_from_db()
        return Response(configuration_json(export))


class Resume(Pause):
    """Go on."""

    @answers("Resume an export", 200, ExportStatus, query=OF_BRANCH, fails=[503])
    def post(self, request: Request, repository: str, branch: str) -> Response:
        """Go on where it stopped. Needs fs:PauseExport on the branch."""
        return self.change(request, repository, branch, paused=False)


class Exports(APIView):
    """All exports that somebody may see."""

    tag = "exports"

    @answers("List exports", 200, page_answer(ExportAnswer), query=[*PAGE, STATE, FIND, LABEL])
    def get(self, request: Request) -> Response:
        """A page of exports by number; those of branches that the caller may not read (fs:ReadBranch) are left out.
        With `?state=` a page may have fewer than asked for."""
        rbac.require(request.user)
        state = one_of(request, "state", STATES)
        rows = narrowed(Export.objects.filter(pk__in=visible(request.user)), request.query_params.get("find", ""))
        rows = with_labels(rows, wanted_labels(request.query_params.getlist("label")))
        amount, after = page_of(request)
        rows = rows.filter(pk__gt=number_of(after, "after")) if after else rows
        page, answer = a_page(list(rows.order_by("pk")[: amount + 1]), amount, lambda row: row.pk)
        readings = sorted(export_statuses(page, clock.now()), key=lambda reading: reading.export.pk)
        results = [export_json(reading) for reading in readings if not state or reading.told.state == state]
        answer["pagination"]["results"] = len(results)
        return Response(answer | {"results": results})


def visible(user: Any) -> list[int]:
    """Keys of the exports whose branch the user may read."""
    rows = Export.objects.order_by().filter(deleting=False).values_list("pk", "repository", "branch")
    return [pk for pk, repo, branch in rows if rbac.allowed(user, "fs:ReadBranch", branch_arn(repo, branch))]


def narrowed(rows: QuerySet[Export], text: str) -> QuerySet[Export]:
    """Those whose repository, branch, name or path holds a text."""
    columns = ("repository", "branch", "name", "path")
    part = reduce(or_, (Q((f"{column}__icontains", text)) for column in columns))
    return rows.filter(part) if text else rows


def reading_of(export: Export) -> ExportSummary:
    """One export as it stands now."""
    return export_statuses([export], clock.now())[0]


def export_json(reading: ExportSummary) -> dict[str, Any]:
    """An export in a list."""
    return {"configuration": configuration_json(reading.export), "status": status_json(reading)}
