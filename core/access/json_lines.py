"""On which lines does a JSON text have the items of a list? For messages about what is JSON, but wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


def lines_of(text: str, key: str) -> list[int]:
    """The line, from 1, on which each item of the list under a key of the outermost object begins. `text` is JSON."""
    begins = [begin for name, begin in _members(text, _past_space(text, 0)) if name == key][-1]  # the last one counts
    return [text.count("\n", 0, begin) + 1 for begin in _items(text, begins)]


def _members(text: str, at: int) -> Iterator[tuple[str, int]]:
    """Each key of the object at a place, and where its value begins."""
    while text[at] != "}":
        key_at = _past_space(text, at + 1)
        if text[key_at] == "}":
            return
        key, at = _DECODER.raw_decode(text, key_at)
        begin = _past_space(text, _past_space(text, at) + 1)
        yield key, begin
        at = _past_value(text, begin)


def _items(text: str, at: int) -> Iterator[int]:
    """Where each item of the list at a place begins."""
    while text[at] != "]":
        begin = _past_space(text, at + 1)
        if text[begin] == "]":
            return
        yield begin
        at = _past_value(text, begin)


def _past_value(text: str, at: int) -> int:
    _, end = _DECODER.raw_decode(text, at)
    return _past_space(text, end)


def _past_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
