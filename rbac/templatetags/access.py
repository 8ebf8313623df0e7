"""What a page shows to whom."""

from __future__ import annotations

from django import template
from django.template import Context

from rbac import services

register = template.Library()


@register.simple_tag(takes_context=True)
def may(context: Context, action: str, arn: str = "*") -> bool:
    """Whether the reader may do something; asks for no more than what their policies have been read for."""
    return services.allowed(context.get("user"), action, arn)
