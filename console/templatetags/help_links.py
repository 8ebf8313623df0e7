"""Links from pages to the part of the documents that fits."""

from __future__ import annotations

from django import template
from django.template import Context

from console.help import topics

register = template.Library()


@register.simple_tag(takes_context=True)
def help_of_page(context: Context) -> str:
    """Where Help in the header leads from this page."""
    request = context.get("request")
    match = getattr(request, "resolver_match", None)
    return topics.of_page(match.url_name if match else None)


@register.simple_tag
def help_of_status(status: int) -> str:
    """The address of what an HTTP status means and what to do; "" if nothing is written of it."""
    return topics.of_status(status)


@register.simple_tag
def help_of_reason(code: str) -> str:
    """The address of what a reason means and what to do; "" if nothing is written of it."""
    return topics.of_reason(code)
