"""What installations tell us: a webhook makes the sensor look at once."""

from __future__ import annotations

import hmac
import json

from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from lakemirror_site import config, wiring
from mirrors import services

MOST_BYTES = 1_000_000


@csrf_exempt
@require_POST
def lakefs_hook(request: HttpRequest, installation: str) -> JsonResponse:
    """A lakeFS action of an installation. Repeated deliveries are harmless: each only asks for a look."""
    if installation not in wiring.regions() or not _is_authentic(request, installation):
        return _refuse("send 'Authorization: Bearer SECRET' with the installation's webhook secret", 401)
    repository = _repository(request)
    if not repository:
        return _refuse("expected the JSON body of a lakeFS webhook, with its repository_id", 400)
    known = services.source_changed(region=installation, repository=repository)
    return JsonResponse({"message": "queued" if known else f"nobody mirrors {repository}"}, status=202)


def _is_authentic(request: HttpRequest, installation: str) -> bool:
    given = request.headers.get("Authorization", "")
    expected = f"Bearer {config.current().hook_secret(installation)!s}"
    return hmac.compare_digest(given.encode(), expected.encode())


def _repository(request: HttpRequest) -> str:
    try:
        if int(request.headers.get("Content-Length") or 0) > MOST_BYTES:
            return ""
        body = json.loads(request.body)
        named = str(body["repository_id"])
        return named if services.NAME.fullmatch(named) else ""
    except (ValueError, KeyError, TypeError):
        return ""


def _refuse(message: str, status: int) -> JsonResponse:
    return JsonResponse({"message": message}, status=status)
