"""On which lines does a JSON text have its values? For messages about what is JSON, but wrong."""

from __future__ import annotations

import json
import re

Path = tuple[str | int | None, ...]
"""The names and numbers (from 0) that lead to a value."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')


def lines_of(text: str) -> dict[Path, int]:
    """The line, from 1, on which each value begins, or the name before it. `text` is JSON; of a name that stands twice
    the last one counts."""
    lines: dict[Path, int] = {}
    path: list[str | int | None] = []  # None: a name comes next
    line, at = 1, 0
    for match in _TOKEN.finditer(text):
        token, line = match.group(), line + text.count("\n", at, match.start())
        at = match.start()
        if token == ":":
            continue
        if token in "}]":
            path.pop()
        elif token == ",":
            path[-1] = path[-1] + 1 if isinstance(path[-1], int) else None
        elif path and path[-1] is None:
            path[-1] = json.loads(token)
            lines[tuple(path)] = line
        else:
            if not path or isinstance(path[-1], int):
                lines[tuple(path)] = line
            if token in "{[":
                path.append(None if token == "{" else 0)
    return lines
