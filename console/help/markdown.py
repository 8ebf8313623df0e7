"""Markdown as HTML: anchors for headings and for rows of tables, links as the product has them, no HTML of its own.

CommonMark with tables, by markdown-it-py; HTML in a text is shown as it is written, never obeyed. Anchors of headings
are those that GitHub gives, so that one link works in both places.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token

_ENDS = frozenset({"softbreak", "hardbreak"})


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the text up to the next one, without markup. `level` is 1 to 6."""

    anchor: str
    title: str
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Rendered:
    """A document as HTML, its sections in their order, and all anchors that a link may name."""

    html: str
    sections: tuple[Section, ...]
    anchors: frozenset[str]


def render(text: str, link: Callable[[str], str | None]) -> Rendered:
    """The text as HTML. `link` says where a link or a picture leads, given what the text says; None: nowhere here,
    and then only its words are shown."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(text)
    anchors = _Anchors()
    _name_headings(tokens, anchors)
    _name_rows(tokens, anchors)
    tokens = _tables_for_narrow_screens(tokens)
    for token in tokens:
        if token.type in ("fence", "code_block"):
            token.attrSet("tabindex", "0")  # a wide example scrolls, by keyboard too
        if token.children:
            token.children = _relinked(token.children, link)
    html = markdown.renderer.render(tokens, markdown.options, {})
    return Rendered(html, tuple(_sections(tokens)), frozenset(anchors.taken))


def slug(text: str) -> str:
    """The anchor that GitHub makes of a heading: lower case, without punctuation, spaces as hyphens."""
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


class _Anchors:
    """Those of one document, each once."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def of_heading(self, text: str) -> str:
        """The same heading again gets -1, -2 …, as at GitHub."""
        wished = slug(text)
        found, number = wished, 0
        while found in self.taken:
            number += 1
            found = f"{wished}-{number}"
        self.taken.add(found)
        return found

    def of_row(self, section: str, words: str) -> str | None:
        """That of a table's row, which the first cell names; None where a row above has it already."""
        wished = f"{section}-{slug(words)}"
        if wished in self.taken or not slug(words):
            return None
        self.taken.add(wished)
        return wished


def _name_headings(tokens: list[Token], anchors: _Anchors) -> None:
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            token.attrSet("id", anchors.of_heading(_plain(tokens[place + 1])))


def _name_rows(tokens: list[Token], anchors: _Anchors) -> None:
    """A row of a table is found by the words of its first cell, below the section's anchor; where that cell has codes,
    by each of them."""
    section = ""
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            section = str(token.attrGet("id"))
        if token.type == "tr_open" and tokens[place + 1].type == "td_open":
            _name_row(token, tokens[place + 2], section, anchors)


def _name_row(row: Token, first: Token, section: str, anchors: _Anchors) -> None:
    codes = [one for one in first.children or [] if one.type == "code_inline"]
    named = {id(one): anchors.of_row(section, one.content) for one in codes}
    for one in codes:
        if anchor := named[id(one)]:
            one.attrSet("id", anchor)
    if not codes and (anchor := anchors.of_row(section, _plain(first))):
        row.attrSet("id", anchor)


def _tables_for_narrow_screens(tokens: list[Token]) -> list[Token]:
    """Each cell names its column, for a row is stacked on a narrow screen; a head that says nothing is left out, and
    a column's empty head is none."""
    kept: list[Token] = []
    heads: list[str] = []
    column = 0
    for place, token in enumerate(tokens):
        if token.type == "thead_open":
            heads = []
        elif token.type == "th_open":
            heads.append(_plain(tokens[place + 1]))
            if not heads[-1]:
                token.tag = tokens[place + 2].tag = "td"
        elif token.type == "tr_open":
            column = 0
        elif token.type == "td_open":
            if column and heads[column]:
                token.attrSet("data-label", heads[column])
            column += 1
        token.attrs.pop("style", None)  # alignment: no inline style here
        kept.append(token)
        if token.type == "thead_close" and not any(heads):
            del kept[_last(kept, "thead_open") :]
    return kept


def _last(tokens: list[Token], kind: str) -> int:
    return max(place for place, token in enumerate(tokens) if token.type == kind)


def _relinked(children: list[Token], link: Callable[[str], str | None]) -> list[Token]:
    kept: list[Token] = []
    dropped = False
    for token in children:
        if token.type == "link_open":
            target = link(str(token.attrGet("href")))
            dropped = target is None
            if target is not None:
                token.attrSet("href", target)
                if "://" in target:
                    token.attrSet("rel", "noreferrer")
        if token.type == "image" and (target := link(str(token.attrGet("src")))):
            token.attrSet("src", target)
            token.attrSet("loading", "lazy")
        if not (dropped and token.type in ("link_open", "link_close")):
            kept.append(token)
        if token.type == "link_close":
            dropped = False
    return kept


def _sections(tokens: list[Token]) -> list[Section]:
    found: list[Section] = []
    words: list[str] = []
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            _close(found, words)
            title = _plain(tokens[place + 1])
            found.append(Section(str(token.attrGet("id")), title, int(token.tag[1]), ""))
        elif token.type == "inline" and tokens[place - 1].type != "heading_open":
            words.append(_plain(token))
        elif token.type in ("fence", "code_block"):
            words.append(token.content)
    _close(found, words)
    return found


def _close(found: list[Section], words: list[str]) -> None:
    if found:
        last = found[-1]
        found[-1] = Section(last.anchor, last.title, last.level, " ".join(" ".join(filter(None, words)).split()))
    words.clear()


def _plain(inline: Token) -> str:
    """The words of a line, without markup."""
    return "".join(" " if one.type in _ENDS else one.content for one in inline.children or []).strip()
