"""What installations and their stores tell us: it makes the sensor, or the validator, look at once."""

from __future__ import annotations

import hmac
import json
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, JsonResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework.decorators import api_view, authentication_classes, permission_classes

from core.errors import Invalid
from core.installations.s3_events import arrived_objects, changed_beside, copies_told
from core.text.phrases import count
from deployment import config
from deployment.wiring import region_settings
from installations import probes
from jobs import duties
from mirrors.services import arrivals
from web.errors import field_of, json_error, message_of
from web.openapi import WEBHOOK_SECRET, answers
from web.schemas import ToldAnswer

MOST_BYTES = 1_000_000
NO_SECRET = "send 'Authorization: Bearer SECRET' with the installation's webhook secret"


@answers("Receive a webhook of lakeFS", 202, ToldAnswer, body=OpenApiTypes.OBJECT, auth=WEBHOOK_SECRET, tag="hooks")
@api_view(["POST"])
@authentication_classes([])
@permission_classes([])
def lakefs_hook(request: HttpRequest, installation: str) -> JsonResponse:
    """A lakeFS action of an installation. Repeated deliveries are harmless: each only asks for a look."""
    if not is_authentic(request, installation):
        return json_error(HTTPStatus.UNAUTHORIZED, NO_SECRET)
    region_settings.require_lakefs(installation, "installation")
    repository = _repository(request)
    if not repository:
        text = "expected the JSON body of a lakeFS webhook, with its repository_id"
        return json_error(HTTPStatus.BAD_REQUEST, text, field="repository_id")
    known = duties.repository_changed(installation, repository)
    return JsonResponse({"message": "queued" if known else f"nobody mirrors {repository}"}, status=202)


@answers("Receive an event of a store", 202, ToldAnswer, body=OpenApiTypes.OBJECT, auth=WEBHOOK_SECRET, tag="hooks")
@api_view(["POST"])
@authentication_classes([])
@permission_classes([])
def s3_hook(request: HttpRequest, installation: str) -> JsonResponse:
    """Objects came to an installation's store, or were copied from it.

    Repeated deliveries are harmless: each only asks for a look.
    """
    if not is_authentic(request, installation):
        return json_error(HTTPStatus.UNAUTHORIZED, NO_SECRET)
    try:
        body = _body(request)
        objects, beside, copies = arrived_objects(body), changed_beside(body), copies_told(body)
    except Invalid as error:
        return json_error(HTTPStatus.BAD_REQUEST, message_of(error), field=field_of(error))
    number = arrivals.objects_arrived(region=installation, objects=objects)
    number += arrivals.copies_told(region=installation, copies=copies)
    noted = arrivals.tell_hearers(installation, objects, beside)
    waited = count(number, "missing object")
    also = f"; {count(noted, 'object')} of replication rules noted" if noted else ""
    return JsonResponse({"message": f"checking {waited} now{also}"}, status=202)


def _body(request: HttpRequest) -> Any:
    """The body as JSON, else Invalid. One that is too long Django refuses."""
    try:
        return json.loads(request.body)
    except (ValueError, RecursionError) as error:
        raise Invalid("expected the JSON body of an S3 event notification, with its Records") from error


def is_authentic(request: HttpRequest, installation: str) -> bool:
    """Whether who calls has the installation's secret."""
    if installation not in region_settings.names():
        return False
    given = request.headers.get("Authorization", "")
    expected = f"Bearer {config.current().hook_secret(installation)!s}"
    return hmac.compare_digest(given.encode(), expected.encode())


def _repository(request: HttpRequest) -> str:
    try:
        if int(request.headers.get("Content-Length") or 0) > MOST_BYTES:
            return ""
        body = json.loads(request.body)
        named = str(body["repository_id"])
        return named if probes.NAME.fullmatch(named) else ""
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
