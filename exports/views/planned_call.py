"""What was typed into the form, as somebody would type it elsewhere: a call of the API, and the command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from shlex import join
from typing import Any
from urllib.parse import quote, urlencode

from django.http import HttpRequest

from core.exporting.names import joined
from deployment import config
from exports.preflight.checks import Plan
from web.api_snippets import curl


def api_call(request: HttpRequest, plan: Plan) -> str:
    """The curl that configures it."""
    repository, branch = quote(plan.repository or "REPOSITORY", safe=""), quote(_which(plan), safe="/:")
    path = f"/api/v1/repositories/{repository}/branches/{branch}/continuous-export"
    elsewhere = "" if plan.region in ("", config.current().region) else "?" + urlencode({"region": plan.region})
    body = json.dumps(_body(plan), ensure_ascii=False)
    return curl("PUT", request.build_absolute_uri(path + elsewhere), body)


def _which(plan: Plan) -> str:
    return joined(plan.branch or "BRANCH", plan.name)


def _body(plan: Plan) -> dict[str, Any]:
    wish = plan.wish
    body: dict[str, Any] = {
        "exportPath": wish.path,
        "exportStatusPath": wish.status_path,
        "lastKeysInPrefixRegexp": list(wish.patterns),
        "isContinuous": wish.continuous,
        "includeActions": wish.actions,
    }
    body |= {"manifest": wish.manifest} if wish.manifest else {}
    limits = {"objectsPerSecond": wish.objects_per_second, "bytesPerSecond": wish.bytes_per_second}
    return body | {name: limit for name, limit in limits.items() if limit}


def set_command(request: HttpRequest, plan: Plan) -> str:
    """The command line that does the same."""
    name = f"lakefs://{plan.repository or 'REPOSITORY'}/{_which(plan)}"
    return join(
        ["lakemirror", "export", "set", name, *_options(plan), "--url", request.build_absolute_uri("/").rstrip("/")]
    )


def _options(plan: Plan) -> Iterator[str]:
    wish = plan.wish
    yield from ("--path", wish.path or "S3-URI", "--continuous" if wish.continuous else "--continuous=false")
    given = [("--status-path", wish.status_path), *(("--prefix-regex", pattern) for pattern in wish.patterns)]
    given += [("--manifest", wish.manifest or "")]
    limits = ("--objects-per-second", wish.objects_per_second), ("--bytes-per-second", wish.bytes_per_second)
    region = "" if plan.region == config.current().region else plan.region
    for option, value in (*given, *limits, ("--region", region)):
        if value:
            yield from (option, str(value))
    yield "--actions" if wish.actions else "--no-actions"
