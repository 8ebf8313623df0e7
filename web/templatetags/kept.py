"""Parts of a page that seldom change: a poll says which it has, and gets them again only when they are others."""

from __future__ import annotations

from hashlib import sha256

from django import template
from django.template import Context, Node, NodeList
from django.template.base import Parser, Token
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

HEADER = "Kept"


class Kept(Node):
    """What stands between the tags, in a `div` that names its content; without it for who has that already."""

    def __init__(self, id_: str, nodes: NodeList) -> None:
        self.id, self.nodes = id_, nodes

    def render(self, context: Context) -> SafeString:
        inside = self.nodes.render(context)
        named = sha256(inside.encode()).hexdigest()[:12]
        has = named in context["request"].headers.get(HEADER, "").split()
        return format_html('<div id="{}" data-kept="{}">{}</div>', self.id, named, "" if has else inside)


@register.tag
def kept(parser: Parser, token: Token) -> Kept:
    """`{% kept ID %}...{% endkept %}`."""
    _, id_ = token.split_contents()
    nodes = parser.parse(("endkept",))
    parser.delete_first_token()
    return Kept(id_, nodes)
