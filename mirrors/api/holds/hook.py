"""lakeFS asks before it moves a branch: a merge is held until regions have it, and what can't be proven is refused."""

from __future__ import annotations

import json
import re
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, JsonResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.decorators import api_view, authentication_classes, permission_classes

from core.errors import Invalid, Throttled
from core.holding import HELD_EVENT, HOOK_TIMEOUT, MOST_COPIES, REFUSED_EVENTS
from deployment.wiring import region_settings
from installations import probes
from mirrors.api.webhooks import MOST_BYTES, NO_SECRET, is_authentic
from mirrors.services.holds.hold import Question, merge_hold
from web.errors import field_of, headers_of, json_error, message_of
from web.openapi import WEBHOOK_SECRET, answers
from web.schemas import ToldAnswer

_ID = re.compile(r"[0-9a-f]{64}")
OF_THE_FILE = (
    OpenApiParameter("copies", int, description="so many regions at least, whatever the mirrors' policies say; 1"),
    OpenApiParameter("timeout", int, description="after how many seconds lakeFS stops to listen; 60"),
)


class HoldAnswer(ToldAnswer):
    """What became of a merge."""

    complete_in = serializers.ListField(child=serializers.CharField())
    seconds = serializers.FloatField(help_text="how long it was held")


@answers(
    "Hold a merge of lakeFS",
    200,
    HoldAnswer,
    body=OpenApiTypes.OBJECT,
    query=OF_THE_FILE,
    auth=WEBHOOK_SECRET,
    fails=[409],
    also=(503, HoldAnswer),
    tag="hooks",
)
@api_view(["POST"])
@authentication_classes([])
@permission_classes([])
def hold_hook(request: HttpRequest, installation: str) -> JsonResponse:
    """Answers when the merge commit is complete in as many regions as the policies of the mirrors want, else 503 when
    its time is over: lakeFS moves the branch after a 2xx alone."""
    if not is_authentic(request, installation):
        return json_error(HTTPStatus.UNAUTHORIZED, NO_SECRET)
    try:
        region_settings.require_lakefs(installation, "installation")
        numbers = _numbers(request)
        event = _event(request)
        if event["event_type"] in REFUSED_EVENTS:
            return json_error(HTTPStatus.CONFLICT, _only_merges(event))
        answer = merge_hold(_question(installation, event, numbers))
    except Invalid as error:
        return json_error(HTTPStatus.BAD_REQUEST, message_of(error), field=field_of(error))
    except Throttled as error:
        refused = json_error(HTTPStatus.SERVICE_UNAVAILABLE, message_of(error))
        for name, value in headers_of(error).items():
            refused[name] = value
        return refused
    return JsonResponse(answer.body, status=200 if answer.goes_on else 503)


def _event(request: HttpRequest) -> dict[str, Any]:
    """The body of a question. Raises Invalid."""
    try:
        if int(request.headers.get("Content-Length") or 0) > MOST_BYTES:
            raise Invalid("the body is too long")
        body = json.loads(request.body)
    except (ValueError, RecursionError) as error:
        raise Invalid("expected the JSON body of a lakeFS webhook") from error
    known = (HELD_EVENT, *REFUSED_EVENTS)
    if not isinstance(body, dict) or body.get("event_type") not in known:
        raise Invalid(f"event_type is one of {', '.join(known)}", field="event_type")
    return body


def _numbers(request: HttpRequest) -> dict[str, int]:
    """What the action file's address says. Raises Invalid."""
    return {
        "copies": _whole(request, "copies", 1, 0, MOST_COPIES),
        "timeout": _whole(request, "timeout", HOOK_TIMEOUT, 6, 3600),
    }


def _question(installation: str, event: dict[str, Any], numbers: dict[str, int]) -> Question:
    repository, branch, commit = (event.get(name) for name in ("repository_id", "branch_id", "commit_id"))
    if not isinstance(repository, str) or not probes.NAME.fullmatch(repository):
        raise Invalid("repository_id is the name of a repository", field="repository_id")
    if not isinstance(branch, str) or not 0 < len(branch) <= 256 or "\0" in branch:
        raise Invalid("branch_id is the name of a branch", field="branch_id")
    if not isinstance(commit, str) or not _ID.fullmatch(commit):
        raise Invalid("commit_id is the id of the merge commit", field="commit_id")
    return Question(
        region=installation,
        repository=repository,
        branch=branch,
        commit=commit,
        merge_source=str(event.get("merge_source") or "").replace("\0", "")[:256],
        **numbers,
    )


def _whole(request: HttpRequest, name: str, usual: int, least: int, most: int) -> int:
    given = request.GET.get(name, "")
    if not given:
        return usual
    if not given.isascii() or not given.isdigit() or not least <= int(given[:9]) <= most:
        raise Invalid(f"{name} is a whole number from {least} to {most}", field=name)
    return int(given)


def _only_merges(event: dict[str, Any]) -> str:
    what = str(event["event_type"]).removeprefix("pre-")
    branch = str(event.get("branch_id", ""))[:256]
    return f"{branch} takes only merges: for a {what} nothing can be proven before it is made. Merge a branch into it"
