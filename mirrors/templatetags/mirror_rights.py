"""What a page's reader may do with mirrors, asked where a page depends on it."""

from __future__ import annotations

from django import template
from django.template import Context

from deployment.wiring import region_settings
from mirrors.services.rights import may_create_some

register = template.Library()


@register.simple_tag(takes_context=True)
def may_create_mirrors(context: Context) -> bool:
    """Whether there could be a mirror that who reads the page creates."""
    return bool(region_settings.lakefs_names()) and may_create_some(context["request"].user)


@register.simple_tag
def knows_lakefs() -> bool:
    """Whether any installation has a lakeFS, so that there is something to mirror."""
    return bool(region_settings.lakefs_names())
