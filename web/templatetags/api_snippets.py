"""What a button or a page does, as a call of the API and as a command."""

from __future__ import annotations

import json
from typing import Any

from django import template
from django.template import Context
from django.urls import reverse

from web.api_snippets import command, curl

register = template.Library()


@register.inclusion_tag("mirrors/_api_call.html", takes_context=True)
def api_call(context: Context, title: str, method: str, path: str, body: str = "") -> dict[str, Any]:
    """The call of the API that does what a button or a page does."""
    return {"title": title, "call": curl(method, context["request"].build_absolute_uri(path), body)}


@register.inclusion_tag("mirrors/_api_call.html", takes_context=True)
def mirror_call(
    context: Context, mirror: Any, title: str, method: str, name: str, *args: object, body: str = ""
) -> dict[str, Any]:
    """The same of a call about a mirror: `name` is that of its address, `args` what that has beyond the mirror."""
    path = reverse(name, args=[mirror.source.name, mirror.name, *args])
    return api_call(context, title, method, path, body)


@register.filter
def as_branch(name: str) -> str:
    """The body of a call that is about a branch."""
    return json.dumps({"branch": name}, ensure_ascii=False)


@register.inclusion_tag("mirrors/_as_command.html", takes_context=True)
def as_command(context: Context, mirror: Any, verb: str, *words: object) -> dict[str, Any]:
    """The same by the command `lakemirror`; words that follow the mirror's name are its arguments and options."""
    given = map(str, words)
    return {"command": command(_site(context), verb, mirror.name, *given, "--repository", mirror.source.name)}


@register.inclusion_tag("mirrors/_as_command.html", takes_context=True)
def list_command(context: Context) -> dict[str, Any]:
    """The list of mirrors by the command `lakemirror`."""
    return {"command": command(_site(context), "list")}


def _site(context: Context) -> str:
    """The address under which this page was opened."""
    return str(context["request"].build_absolute_uri("/")).rstrip("/")
