"""The patterns of an export by google-re2: to look at what a user gives, and at some directories and keys.

RE2 takes time in proportion to the text, whatever the pattern is. Very many keys: `spark_jobs/export/patterns.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import re2

from core.errors import Invalid
from core.exporting.markers import directory_of, is_marker
from core.exporting.patterns import at_the_end
from core.exporting.regex_hints import PARENTHESES, instead, odd_parenthesis


class Patterns:
    """Patterns that were found to be right. Raises Invalid, which says which one is wrong, and where."""

    def __init__(self, patterns: Iterable[str], *, field: str = "") -> None:
        self._both = [
            (_compiled(pattern, number, field), _ending(pattern)) for number, pattern in enumerate(patterns, 1)
        ]

    def matches_directory(self, directory: bytes) -> bool:
        """Does a directory (with its slash; the root is empty) get a marker?"""
        return any(anywhere.search(directory) for anywhere, _ in self._both)

    def is_last_key(self, key: bytes) -> bool:
        """Does the key come after all others of its directory? One that stands where a marker would always does."""
        if is_marker(key):
            return True
        directory = directory_of(key)
        return any(ending.search(key) and not anywhere.search(directory) for anywhere, ending in self._both)


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    return options


def _compiled(pattern: str, number: int, field: str) -> Any:
    try:
        return re2.compile(pattern, _options())
    except (re2.error, UnicodeEncodeError) as error:
        words, part = _words_and_part(error)
        at = _position(pattern, words, part)
        where = f", at character {at + 1} ('{pattern[at : at + max(1, len(part))][:20]}')" if at >= 0 else ""
        message = f"pattern {number}, '{pattern[:200]}', is not a valid RE2 expression: {words}{where}"
        raise Invalid(message, field=field, hint=instead(words, pattern[at:] if at >= 0 else part)) from None


def _words_and_part(error: Exception) -> tuple[str, str]:
    """RE2's own words and the part of the pattern that they are about."""
    if isinstance(error, UnicodeEncodeError):
        return "it is not text", ""
    raw = error.args[0] if error.args else b""
    words, _, part = (raw.decode(errors="replace") if isinstance(raw, bytes) else str(raw)).partition(": ")
    return words, part


def _position(pattern: str, words: str, part: str) -> int:
    """Where it goes wrong, -1 if that is nowhere: RE2 names the part, which may stand in several places. It is the
    first one up to which the pattern is wrong in the same way."""
    if words in PARENTHESES:
        return odd_parenthesis(pattern)
    first = at = len(pattern) - 1 if words.startswith("trailing") else pattern.find(part) if part else -1
    while at >= 0 and not _is_wrong_at(pattern[: at + len(part)], words):
        at = pattern.find(part, at + 1) if part else -1
    return at if at >= 0 else first


def _is_wrong_at(beginning: str, words: str) -> bool:
    try:
        re2.compile(beginning, _options())
    except re2.error as error:
        return _words_and_part(error)[0] == words
    return False


def _ending(pattern: str) -> Any:
    plain, quoted = at_the_end(pattern)
    try:
        return re2.compile(plain, _options())
    except re2.error:
        return re2.compile(quoted, _options())
