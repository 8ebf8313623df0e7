"""The replication API: mirrors of a repository."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.access.policies import repository_arn
from core.bringing import ObjectReplication
from core.errors import Conflict, Invalid, NotFound
from core.mirroring.branch_selection import ALL, OnUnselect
from db.labels import with_labels
from deployment import config
from deployment.wiring import region_settings
from jobs.job_ids import accepted, duty_url
from mirrors.api.schemas import MirrorAnswer, MirrorChangedAnswer, PromotionAnswer, TagAnswer
from mirrors.api.serializers import BranchNamed, MirrorChange, MirrorCreation, mirror_json
from mirrors.models import Mirror, MirrorDuty
from mirrors.preflight.checks import preflight
from mirrors.preflight.questions import Plan
from mirrors.preflight.standing import standing_checks, switched_on
from mirrors.services import mirrors as services
from mirrors.services import settings as options
from mirrors.services.rights import require_operation_of, require_sight, require_sight_of
from mirrors.services.settings_etag import etag_of
from mirrors.status import mirror as readings
from mirrors.status.commit_json import promotion_json
from mirrors.status.tags import tag_json, tag_readings
from rbac import services as rbac
from web.etags import seen
from web.labels import LABEL, wanted_labels
from web.openapi import IF_MATCH, answers, etag
from web.paging import MIRRORS_PAGE, PAGE, a_page, mirrors_page_of, newest_first, page_of
from web.pauses import PauseTerms, stated_in
from web.schemas import LOCATION, JobTakenAnswer, check_json, page_answer

SOURCE_REGION = OpenApiParameter(
    "source_region", str, description="the region of the repository, if it isn't the deployment's own"
)
BRANCH = OpenApiParameter("branch", str, description="only moves of this branch")


def source_region(request: Request) -> str:
    """The region of `{repo}`: this deployment's own, unless the query names another."""
    region = request.query_params.get("source_region") or config.current().region
    region_settings.require_lakefs(region, "source_region")
    return region


def mirror_answer(mirror: Mirror, status: int = 200, **more: Any) -> Response:
    """A mirror with what is known of it now, and the tag of its settings."""
    told = mirror_json(readings.mirror_status(mirror)) | more
    return Response(told, status=status, headers={"ETag": etag_of(mirror)})


def creation_arguments(request: Request, repository: str) -> dict[str, Any]:
    """What a body of creation asks services.check_creation for."""
    body = request.data
    if not isinstance(body, dict):
        raise Invalid("expected a JSON object with name, region and storage_namespace")
    creation = MirrorCreation(data=body)
    creation.is_valid(raise_exception=True)
    given = creation.validated_data
    return {
        "source_repository": repository,
        "source_region": given["source_region"] or source_region(request),
        "settings": creation.settings,
        **{name: given[name] for name in ("name", "region", "storage_namespace", "adopt")},
    }


def plan_of(arguments: Mapping[str, Any]) -> Plan:
    """What `creation_arguments` gave, as the preflight takes it."""
    settings, place = arguments["settings"], {name: arguments[name] for name in arguments if name != "settings"}
    chosen = settings.get("selected", {})
    return Plan(
        **place,
        include=tuple(chosen.get("include", ALL)),
        exclude=tuple(chosen.get("exclude", ())),
        tags=settings.get("tags", False),
        managed=settings.get("object_replication") == ObjectReplication.MANAGED,
        holds=bool(settings.get("hold")),
        follows_gc=settings.get("follow_gc", False),
    )


def _require_checks(actor: Any, arguments: Mapping[str, Any]) -> None:
    """Raises what creation would, and Conflict with what failed."""
    services.check_creation(actor=actor, **arguments)
    result = preflight(actor=actor, plan=plan_of(arguments), writing=True)
    if result.failed:
        told = [f"{check.id} ({check.message})" for check in result.checks if check.id in result.failed]
        raise Conflict(f"failed checks: {'; '.join(told)}", hint="Fix them, or create it without require_checks")


class Mirrors(APIView):
    """Mirrors of one repository: list them, make one."""

    tag = "mirrors"

    @answers("List mirrors", 200, page_answer(MirrorAnswer), query=[*MIRRORS_PAGE, SOURCE_REGION, LABEL])
    def get(self, request: Request, repository: str) -> Response:
        """A page of mirrors by name. Needs fs:ListRepositories on `*`, or fs:ReadRepository on single mirrors."""
        require_sight(request.user)
        amount, after = mirrors_page_of(request)
        mirrors = Mirror.objects.visible_to(request.user).filter(
            source__name=repository, source__region=source_region(request), name__gt=after
        )
        mirrors = with_labels(mirrors, wanted_labels(request.query_params.getlist("label")))
        rows = list(mirrors.select_related("source").order_by("name")[: amount + 1])
        page, pagination = a_page(rows, amount, lambda mirror: mirror.name)
        return Response(pagination | {"results": [mirror_json(reading) for reading in readings.mirror_statuses(page)]})

    @answers(
        "Create a mirror", 201, MirrorAnswer, body=MirrorCreation, query=[SOURCE_REGION, etag(201)], fails=[502, 503]
    )
    def post(self, request: Request, repository: str) -> Response:
        """Begin to mirror. 201 with the mirror; its repository follows within moments, unless one is adopted. With
        `require_checks` 409 if a check of the preflight fails, and then nothing is stored."""
        arguments = creation_arguments(request, repository)
        if request.data.get("require_checks"):
            _require_checks(request.user, arguments)
        mirror = services.mirror_create(actor=request.user, **arguments)
        return mirror_answer(mirror, status=201)


class MirrorDetail(APIView):
    """One mirror: see it, change its settings, delete it."""

    tag = "mirrors"

    @answers("Get a mirror", 200, MirrorAnswer, query=[etag(200)])
    def get(self, request: Request, repository: str, mirror_id: str) -> Response:
        """The mirror. Needs fs:ListRepositories on `*`, or fs:ReadRepository on the mirror."""
        return mirror_answer(find_visible(request, repository, mirror_id))

    @answers(
        "Change a mirror", 200, MirrorChangedAnswer, body=MirrorChange, query=[IF_MATCH, etag(200)], fails=[409, 412]
    )
    def patch(self, request: Request, repository: str, mirror_id: str) -> Response:
        """Change the settings that the body names. Where `hold` or `follow_gc` is switched on, the answer has the
        checks that these ask for. Needs fs:MirrorRepository on repository/{repository}."""
        rbac.require(request.user, ("fs:MirrorRepository", repository_arn(repository)))
        body = MirrorChange(data=request.data)
        body.is_valid(raise_exception=True)
        on_unselect = OnUnselect(body.validated_data.get("on_unselect", OnUnselect.KEEP))
        if_match = seen(request.headers.get("If-Match", ""))
        old = find_mirror(repository, mirror_id)
        changed = options.mirror_update(
            actor=request.user, mirror=old, changes=body.settings, on_unselect=on_unselect, seen=if_match
        )
        checks = standing_checks(changed).checks if switched_on(old, changed) else []
        return mirror_answer(changed, checks=[check_json(check) for check in checks])

    @answers("Delete a mirror", 204, query=[IF_MATCH], fails=[412])
    def delete(self, request: Request, repository: str, mirror_id: str) -> Response:
        """Remove the mirror's references, never its objects. Needs fs:DeleteRepository on repository/{id}."""
        rbac.require(request.user, ("fs:DeleteRepository", repository_arn(mirror_id)))
        if_match = seen(request.headers.get("If-Match", ""))
        mirror = find_mirror(repository, mirror_id)
        services.mirror_delete(actor=request.user, mirror=mirror, seen=if_match)
        return Response(status=204)


class Pause(APIView):
    """Let nothing of a mirror move; what arrives is copied and checked all the same."""

    tag = "mirrors"

    @answers("Pause a mirror", 200, MirrorAnswer, body=PauseTerms, query=[etag(200)])
    def post(self, request: Request, repository: str, mirror_id: str) -> Response:
        """The mirror. The body may say why, and until when it is meant: it does not end by itself, but an alert tells
        that it lasts for longer. Needs fs:OperateMirror on its source or on itself."""
        require_operation_of(request.user, repository, mirror_id)
        return _change(request, repository, mirror_id, {"paused": True} | stated_in(request.data))


class Resume(APIView):
    """Let it move again: each branch straight to its newest complete commit."""

    tag = "mirrors"

    @answers("Resume a mirror", 200, MirrorAnswer, query=[etag(200)])
    def post(self, request: Request, repository: str, mirror_id: str) -> Response:
        """The mirror. Needs fs:OperateMirror on its source or on itself."""
        require_operation_of(request.user, repository, mirror_id)
        return _change(request, repository, mirror_id, {"paused": False})


class Sync(APIView):
    """Look at the source, and for all that is missing, at once."""

    tag = "mirrors"

    @answers("Sync a mirror", 202, JobTakenAnswer, query=[LOCATION])
    def post(self, request: Request, repository: str, mirror_id: str) -> Response:
        """202: its duties are due now. Needs fs:OperateMirror on the source or the mirror."""
        require_operation_of(request.user, repository, mirror_id)
        mirror = find_mirror(repository, mirror_id)
        services.mirror_sync(actor=request.user, mirror=mirror)
        message = f"checking {repository} now, and everything that is missing"
        return accepted({"message": message}, duty_url(MirrorDuty.SENSE, mirror.source_id))


def _change(request: Request, repository: str, mirror_id: str, settings: Mapping[str, Any]) -> Response:
    """The mirror with other settings. Who calls asked for the right before: else one learns which mirrors there are."""
    mirror = find_mirror(repository, mirror_id)
    return mirror_answer(options.mirror_update(actor=request.user, mirror=mirror, changes=settings))


class Promotions(APIView):
    """How the branches of a mirror were moved, by it and by others."""

    tag = "mirrors"

    @answers("List promotions", 200, page_answer(PromotionAnswer), query=[*PAGE, BRANCH])
    def get(self, request: Request, repository: str, mirror_id: str) -> Response:
        """A page of moves, the last one first. Needs fs:ListRepositories on `*`, or fs:ReadRepository on the mirror."""
        moves = find_visible(request, repository, mirror_id).promotions.all()
        if branch := request.query_params.get("branch"):
            moves = moves.filter(branch=branch, is_tag=False)
        return Response(newest_first(request, moves, promotion_json))


class Tags(APIView):
    """The tags of a mirror: those that it follows, and those that are there."""

    tag = "mirrors"

    @answers("List tags", 200, page_answer(TagAnswer), query=PAGE)
    def get(self, request: Request, repository: str, mirror_id: str) -> Response:
        """A page of tags by name. Needs fs:ListRepositories on `*`, or fs:ReadRepository on the mirror."""
        require_sight_of(request.user, mirror_id)
        amount, after = page_of(request)
        tags = tag_readings(find_mirror(repository, mirror_id), after=after, amount=amount + 1)
        page, pagination = a_page(tags, amount, lambda tag: tag.name)
        return Response(pagination | {"results": [tag_json(tag) for tag in page]})


class BranchReset(APIView):
    """Undo what somebody wrote to a mirror's branch by force."""

    tag = "mirrors"

    @answers("Reset a branch", 202, JobTakenAnswer, body=BranchNamed, query=[LOCATION])
    def post(self, request: Request, repository: str, mirror_id: str) -> Response:
        """202: it is done in the next round. Needs fs:MirrorRepository on repository/{repository}."""
        rbac.require(request.user, ("fs:MirrorRepository", repository_arn(repository)))
        body = BranchNamed(data=request.data)
        body.is_valid(raise_exception=True)
        mirror, branch = find_mirror(repository, mirror_id), body.validated_data["branch"]
        services.branch_reset(actor=request.user, mirror=mirror, branch=branch)
        message = f"the uncommitted changes of {branch} will be reverted in the next round"
        return accepted({"message": message}, duty_url(MirrorDuty.PROMOTE, mirror.pk))


def find_visible(request: Request, repository: str, mirror_id: str) -> Mirror:
    """The mirror of that id of the repository, for who may see mirrors. Raises Denied and NotFound."""
    require_sight_of(request.user, mirror_id)
    return find_mirror(repository, mirror_id)


def find_mirror(repository: str, mirror_id: str) -> Mirror:
    """The mirror of that id if it is one of the repository, else NotFound."""
    mirror = Mirror.objects.live().select_related("source").filter(name=mirror_id, source__name=repository).first()
    if mirror is None:
        raise NotFound(f"there is no mirror '{mirror_id[:80]}' of '{repository[:80]}'")
    return mirror
