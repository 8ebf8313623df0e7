"""What a page's reader may do with exports, asked where a page depends on it."""

from __future__ import annotations

from django import template
from django.template import Context

from deployment.wiring import region_settings
from exports.services.rights import may_configure_some

register = template.Library()


@register.simple_tag(takes_context=True)
def may_configure_exports(context: Context) -> bool:
    """Whether there could be a branch whose export who reads the page configures."""
    return bool(region_settings.lakefs_names()) and may_configure_some(context["request"].user)
