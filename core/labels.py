"""Labels: what people call things by, to find them and to say who is told of them. Pure.

A label is a key with a value, like `team: sales`; the value may be empty. A pattern is `key=value` with `*` and `?` in
the value, or a key alone, which any value fits.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from core.errors import Invalid

MOST, LONGEST = 20, 63
_KEY = re.compile(rf"[a-z][a-z0-9_.-]{{0,{LONGEST - 1}}}")
_VALUE = re.compile(rf"(?:[A-Za-z0-9][A-Za-z0-9_.@/-]{{0,{LONGEST - 1}}})?")
HINT = "Write key=value: the key in lower case, letters, digits and _ . -, beginning with a letter"


def check(labels: Mapping[str, str]) -> None:
    """Raises Invalid for the first label that can't be."""
    if len(labels) > MOST:
        raise Invalid(f"{MOST} labels are the most", field="labels")
    for key, value in labels.items():
        if not _KEY.fullmatch(key):
            raise Invalid(f"'{key[:80]}' is no key of a label", field="labels", hint=HINT)
        if not _VALUE.fullmatch(value):
            hint = "Use letters, digits and _ . - @ /, beginning with a letter or digit"
            raise Invalid(f"'{value[:80]}' is no value of the label {key}", field="labels", hint=hint)


def of(values: Mapping[str, Any]) -> dict[str, str]:
    """From JSON. Raises Invalid."""
    if not all(isinstance(value, str) for value in values.values()):
        raise Invalid("must be an object of texts", field="labels", hint='Write {"team": "sales"}')
    check(values)
    return dict(values)


def parse(texts: Sequence[str]) -> dict[str, str]:
    """From `key=value` each. Raises Invalid for what is none, and for a key that comes twice."""
    labels: dict[str, str] = {}
    for text in texts:
        key, _, value = text.partition("=")
        if key.strip() in labels:
            raise Invalid(f"the label {key.strip()[:80]} is there twice", field="labels", hint="Leave one of them out")
        labels[key.strip()] = value.strip()
    check(labels)
    return labels


def can_be(key: str, value: str = "") -> bool:
    """Whether there may be such a label."""
    return bool(_KEY.fullmatch(key) and _VALUE.fullmatch(value))


def words(labels: Mapping[str, str]) -> list[str]:
    """Each as it is typed and shown, by key."""
    return [f"{key}={value}" if value else key for key, value in sorted(labels.items())]


def pattern_problem(pattern: str) -> str:
    """What is wrong with a pattern, or ""."""
    key = pattern.partition("=")[0]
    return "" if _KEY.fullmatch(key) else f"'{pattern[:80]}' is no pattern of labels: write key=value, or a key alone"


def fit(labels: Mapping[str, str], patterns: Sequence[str]) -> bool:
    """Whether labels fit: of the patterns with the same key any, of different keys all."""
    by_key: dict[str, list[str]] = defaultdict(list)
    for pattern in patterns:
        key, equals, value = pattern.partition("=")
        by_key[key].append(value if equals else "*")
    return all(
        key in labels and any(fnmatchcase(labels[key], value) for value in values) for key, values in by_key.items()
    )
