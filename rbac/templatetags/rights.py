"""What a page's reader may do, asked where a page depends on it."""

from __future__ import annotations

from collections.abc import Iterable

from django import template
from django.template import Context
from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe

from rbac import services
from rbac.views.parts import tabs_of

register = template.Library()
_BADGES = {
    True: '<span class="state good"><svg class="icon" aria-hidden="true"><use href="#i-check"/></svg>{}</span>',
    False: '<span class="state bad"><svg class="icon" aria-hidden="true"><use href="#i-cross"/></svg>{}</span>',
}


@register.simple_tag(takes_context=True)
def may(context: Context, action: str, arn: str = "*") -> bool:
    """Whether who reads the page may do that."""
    return services.allowed(context["request"].user, action, arn)


@register.simple_tag(takes_context=True)
def administers(context: Context) -> bool:
    """Whether who reads the page may list users, groups or policies."""
    return any(tab.listing for tab in tabs_of(context["request"].user))


@register.simple_tag
def verdict(allowed: bool, yes: str = "Allowed", no: str = "Refused") -> SafeString:
    """Yes or no as icon, word and colour."""
    return mark_safe(_BADGES[bool(allowed)].format(yes if allowed else no))


@register.filter
def diff(lines: Iterable[tuple[str, str]]) -> SafeString:
    """Lines with "+", "-" or " " before them, for a `pre`."""
    marks = {"+": "added", "-": "removed"}
    shown = ((marks.get(sign, ""), sign, line) for sign, line in lines)
    return format_html_join("", '<code class="{}">{} {}\n</code>', shown)
