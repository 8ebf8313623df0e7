"""What a page says, as people read it."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from django.http import HttpResponse


class _Text(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.feed(html)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th", "dt", "dd", "li", "p", "h1", "h2"):
            self.words.append(" ")

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def text(answer: HttpResponse) -> str:
    """Its words, without tags."""
    return re.sub(r"\s+", " ", "".join(_Text(answer.content.decode()).words))
