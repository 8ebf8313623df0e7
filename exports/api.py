"""The API of exports, below /api/v1: by branch, as lakeFS once had it, and a list of them all."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.policies import branch_arn
from exports import placement, services
from exports.models import Export
from exports.serializers import (
    ExportAnswer,
    ExportConfiguration,
    ExportFailureAnswer,
    ExportRunAnswer,
    ExportStatus,
    configuration_json,
    failure_json,
    last_run,
    run_json,
    status_json,
)
from lakemirror_site import config, wiring
from lakemirror_site.openapi import answers
from mirrors.answers import page_answer
from mirrors.paging import PAGE, by_number, newest_first
from rbac import services as rbac

REGION = OpenApiParameter("region", str, description="the region of the repository, if not the deployment's own")


def region_of(request: Request) -> str:
    """The region of `{repository}`: this deployment's own, unless the query names another."""
    region = request.query_params.get("region") or config.current().region
    wiring.installation(region)
    return region


class OfBranch(APIView):
    """What all calls about one branch share."""

    def readable(self, request: Request, repository: str, branch: str) -> Export:
        """The export, for somebody who may read the branch. NotFound also says whether the branch exists."""
        rbac.require(request.user, ("fs:ReadBranch", branch_arn(repository, branch)))
        return self.found(request, repository, branch)

    def found(self, request: Request, repository: str, branch: str) -> Export:
        """The export. Where there is none, NotFound names what is missing: repository, branch or configuration."""
        region = region_of(request)
        export = Export.objects.of_branch(region, repository, branch).filter(deleting=False).first()
        if export is None:
            placement.source_of(region, repository)
            placement.check_branch(region, repository, branch)
        return export or services.find_export(region, repository, branch)


class Configuration(OfBranch):
    """The configuration of a branch's export."""

    @answers("Get an export configuration", 200, ExportConfiguration, query=[REGION], fails=[503])
    def get(self, request: Request, repository: str, branch: str) -> Response:
        """How the branch is exported. Needs fs:ReadBranch on it."""
        return Response(configuration_json(self.readable(request, repository, branch)))

    @answers("Set an export configuration", 201, body=ExportConfiguration, query=[REGION], fails=[409, 502, 503])
    def put(self, request: Request, repository: str, branch: str) -> Response:
        """Replace the configuration, and export the branch's state of now. 201, empty. Needs fs:ExportConfig on it."""
        rbac.require(request.user, ("fs:ExportConfig", branch_arn(repository, branch)))
        body = ExportConfiguration(data=request.data)
        body.is_valid(raise_exception=True)
        services.export_set(
            actor=request.user,
            region=region_of(request),
            repository=repository,
            branch=branch,
            wish=body.wish(),
            request=request,
        )
        return Response(status=201)

    @answers("Delete an export configuration", 204, query=[REGION], fails=[503])
    def delete(self, request: Request, repository: str, branch: str) -> Response:
        """Export no more; what was exported stays where it is. Needs fs:ExportConfig on the branch."""
        rbac.require(request.user, ("fs:ExportConfig", branch_arn(repository, branch)))
        export = self.found(request, repository, branch)
        services.export_delete(actor=request.user, export=export, request=request)
        return Response(status=204)


class Hook(OfBranch):
    """Export a branch now."""

    @answers("Start an export", 201, OpenApiTypes.STR, query=[REGION], fails=[502, 503])
    def post(self, request: Request, repository: str, branch: str) -> Response:
        """Export the branch's head of now. 201 with the run's id; 409 while one goes on, after a failure (repair it),
        and where there is nothing to export. Needs fs:RunExport on the branch."""
        rbac.require(request.user, ("fs:RunExport", branch_arn(repository, branch)))
        export = self.found(request, repository, branch)
        return Response(str(services.export_run(actor=request.user, export=export, request=request).pk), status=201)


class Repair(OfBranch):
    """Resume a failed export."""

    @answers("Repair an export", 201, query=[REGION], fails=[503])
    def post(self, request: Request, repository: str, branch: str) -> Response:
        """What kept the export from succeeding is repaired: it goes on. 201, empty; 409 unless it has failed. Needs
        fs:RunExport on the branch."""
        rbac.require(request.user, ("fs:RunExport", branch_arn(repository, branch)))
        export = self.found(request, repository, branch)
        services.export_repair(actor=request.user, export=export, request=request)
        return Response(status=201)


class Status(OfBranch):
    """Where an export stands."""

    @answers("Get an export status", 200, ExportStatus, query=[REGION], fails=[503])
    def get(self, request: Request, repository: str, branch: str) -> Response:
        """State, errors and the run that goes on, else the last one. Needs fs:ReadBranch on the branch."""
        export = self.readable(request, repository, branch)
        return Response(status_json(export, last_run(export)))


class Runs(OfBranch):
    """The runs of an export."""

    @answers("List export runs", 200, page_answer(ExportRunAnswer), query=[*PAGE, REGION], fails=[503])
    def get(self, request: Request, repository: str, branch: str) -> Response:
        """A page of runs, the last one first. Needs fs:ReadBranch on the branch."""
        return Response(newest_first(request, self.readable(request, repository, branch).runs, run_json))


class Failures(OfBranch):
    """What the last run could not do."""

    @answers("List export failures", 200, page_answer(ExportFailureAnswer), query=[*PAGE, REGION], fails=[503])
    def get(self, request: Request, repository: str, branch: str) -> Response:
        """A page of files that the last run could not bring or remove. Needs fs:ReadBranch on the branch."""
        run = last_run(self.readable(request, repository, branch))
        rows = run.failures if run else Export.objects.none()
        return Response(by_number(request, rows, failure_json, "pk", newest=False))


class Pause(OfBranch):
    """Pause an export, or resume it."""

    paused = True

    @answers("Pause an export", 200, ExportStatus, query=[REGION], fails=[503])
    def post(self, request: Request, repository: str, branch: str) -> Response:
        """Stop after what is being copied right now; nothing is lost. Needs fs:PauseExport on the branch."""
        return self.change(request, repository, branch, paused=True)

    def change(self, request: Request, repository: str, branch: str, *, paused: bool) -> Response:
        rbac.require(request.user, ("fs:PauseExport", branch_arn(repository, branch)))
        export = self.found(request, repository, branch)
        services.export_pause(actor=request.user, export=export, paused=paused, request=request)
        export.refresh_from_db()
        return Response(status_json(export, last_run(export)))


class Resume(Pause):
    """Go on."""

    @answers("Resume an export", 200, ExportStatus, query=[REGION], fails=[503])
    def post(self, request: Request, repository: str, branch: str) -> Response:
        """Go on where it stopped. Needs fs:PauseExport on the branch."""
        return self.change(request, repository, branch, paused=False)


class Exports(APIView):
    """All exports that somebody may see."""

    @answers("List exports", 200, page_answer(ExportAnswer), query=PAGE)
    def get(self, request: Request) -> Response:
        """A page of exports by number; those of branches that the caller may not read (fs:ReadBranch) are left out."""
        rbac.require(request.user)
        seen = Export.objects.filter(pk__in=visible(request.user))
        return Response(by_number(request, seen, export_json, "pk", newest=False))


def visible(user: Any) -> list[int]:
    """Keys of the exports whose branch the user may read."""
    rows = Export.objects.order_by().filter(deleting=False).values_list("pk", "repository", "branch")
    return [pk for pk, repo, branch in rows if rbac.allowed(user, "fs:ReadBranch", branch_arn(repo, branch))]


def export_json(export: Export) -> dict[str, Any]:
    """An export in a list."""
    return {"configuration": configuration_json(export), "status": status_json(export, last_run(export))}
