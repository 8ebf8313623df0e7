"""Sections of the documents that hold all words of a text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from console.help.documents import Document, documents, is_listed
from console.help.markdown import Section

MOST = 40
"""So many sections at most are shown."""
LONGEST = 200
"""Of so many characters a text that is looked for may be."""
AROUND = 90


@dataclass(frozen=True, slots=True)
class Hit:
    """A section with an excerpt around the first word, the words marked."""

    document: Document
    section: Section
    excerpt: SafeString

    @property
    def address(self) -> str:
        """The section's own."""
        return f"{self.document.address}#{self.section.anchor}"


def search(text: str) -> list[Hit]:
    """The sections that hold every word, whatever the case: those first whose heading does, then by how often."""
    words = text[:LONGEST].casefold().split()
    if not words:
        return []
    found = []
    for order, document in enumerate(documents()):
        for section in document.rendered.sections:
            if (rank := _rank(document, section, words)) is not None:
                found.append((rank, order, len(found), document, section))
    found.sort(key=lambda one: one[:3])
    return [Hit(document, section, excerpt(section.text, words)) for *_, document, section in found[:MOST]]


def _rank(document: Document, section: Section, words: list[str]) -> tuple[int, int] | None:
    """The lower, the better; None if a word is missing."""
    title, text = section.title.casefold(), section.text.casefold()
    if not all(word in title or word in text for word in words):
        return None
    in_title = sum(word in title for word in words)
    nearness = 2 if document.name.startswith("guide/") else 0 if is_listed(document.name) else -3
    return -2 * in_title - nearness, -min(sum(text.count(word) for word in words), 20)


def excerpt(text: str, words: list[str]) -> SafeString:
    """Some of the text around the first word that it holds, with all words in <mark>."""
    pattern = re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True))), re.IGNORECASE)
    first = pattern.search(text)
    start = max(first.start() - AROUND, 0) if first else 0
    end = start + 2 * AROUND + 40
    shown = ("… " if start else "") + text[start:end] + (" …" if end < len(text) else "")
    pieces, last = [], 0
    for match in pattern.finditer(shown):
        pieces += [("", shown[last : match.start()], ""), ("<mark>", match.group(), "</mark>")]
        last = match.end()
    pieces.append(("", shown[last:], ""))
    return format_html_join("", "{}{}{}", ((_tag(a), text, _tag(b)) for a, text, b in pieces))


def _tag(tag: str) -> SafeString:
    return SafeString(tag)
