"""What a button of an export does, as a call of the API and as a command."""

from __future__ import annotations

from shlex import join
from typing import Any

from django import template
from django.template import Context
from django.urls import reverse
from django.utils.http import urlencode

from deployment import config
from exports.models import Export
from web.api_snippets import curl

register = template.Library()


@register.simple_tag
def export_url(export: Export, name: str, **query: object) -> str:
    """The address of a call about an export; with its region where that is not the deployment's own."""
    region = {} if export.region == config.current().region else {"region": export.region}
    given = region | {key: value for key, value in query.items() if value not in (None, "")}
    return reverse(name, args=[export.repository, export.which]) + (f"?{urlencode(given)}" if given else "")


@register.inclusion_tag("mirrors/_api_call.html", takes_context=True)
def export_call(context: Context, title: str, method: str, name: str, body: str = "") -> dict[str, Any]:
    """The call that does what a button or the page does."""
    url = context["request"].build_absolute_uri(export_url(context["export"], name))
    return {"title": title, "call": curl(method, url, body)}


@register.inclusion_tag("mirrors/_as_command.html", takes_context=True)
def export_command(context: Context, verb: str, *words: str) -> dict[str, Any]:
    """The same by the command `lakemirror`."""
    return {"command": _command(context, verb, _branch(context["export"]), *words, *_region(context["export"]))}


@register.inclusion_tag("mirrors/_as_command.html", takes_context=True)
def exports_command(context: Context) -> dict[str, Any]:
    """The list by the command `lakemirror`."""
    return {"command": _command(context, "list")}


def _branch(export: Export) -> str:
    return f"lakefs://{export.repository}/{export.which}"


def _region(export: Export) -> list[str]:
    return [] if export.region == config.current().region else ["--region", export.region]


def _command(context: Context, verb: str, *words: str) -> str:
    site = str(context["request"].build_absolute_uri("/")).rstrip("/")
    return join(["lakemirror", "export", verb, *words, "--url", site])
