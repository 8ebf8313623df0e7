"""What a button of a rule does, as a call of the API and as a command."""

from __future__ import annotations

from typing import Any

from django import template
from django.template import Context
from django.urls import reverse

from replication.views.planned_call import rule_command as command
from web.api_snippets import curl

register = template.Library()


@register.inclusion_tag("mirrors/_api_call.html", takes_context=True)
def rule_call(
    context: Context, title: str, method: str, name: str, *args: object, body: str = "", query: str = ""
) -> dict[str, Any]:
    """The call about the rule of the page: `name` is that of its address, `args` what that has beyond the rule."""
    path = reverse(name, args=[context["rule"].name, *args]) + (f"?{query}" if query else "")
    return {"title": title, "call": curl(method, context["request"].build_absolute_uri(path), body)}


@register.inclusion_tag("mirrors/_as_command.html", takes_context=True)
def rule_command(context: Context, verb: str, *words: object) -> dict[str, Any]:
    """The same by the command `lakemirror`."""
    return {"command": command(context["request"], verb, context["rule"].name, *map(str, words))}


@register.inclusion_tag("mirrors/_as_command.html", takes_context=True)
def rules_command(context: Context) -> dict[str, Any]:
    """The list by the command `lakemirror`."""
    return {"command": command(context["request"], "list")}
