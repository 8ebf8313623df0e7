"""A policy as text that people edit: which line a complaint is about, and what differs from the one that is saved."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from core.access.json_lines import Path, lines_of
from core.access.policies import Policy, parse_policy
from core.errors import Invalid

_FIELD = re.compile(r"(?:(\w+) of )?statement (\d+)|(\w+)")

_ORDER = {"effect": 0, "action": 1, "resource": 2}


@dataclass(frozen=True, slots=True)
class Wrong:
    """What is wrong with a text, in words, and the line that it is about; 0 for none."""

    message: str
    line: int
    text: str


def read(text: str) -> Policy | Wrong:
    """The policy, or what is wrong with its text and where."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        return Wrong(f"This is not JSON: {error.msg} at column {error.colno}", error.lineno, _line(text, error.lineno))
    except RecursionError:
        return Wrong("This is nested too deeply", 0, "")
    try:
        return parse_policy(document)
    except Invalid as error:
        number = line_of(text, error.field)
        return Wrong(str(error), number, _line(text, number))


def line_of(text: str, field: str) -> int:
    """The line, from 1, on which the field of an Invalid stands: `action of statement 2`, `id`. 0 if it stands nowhere.

    `text` is JSON. Where the field itself is missing it is the line of what it is missing from.
    """
    match = _FIELD.fullmatch(field)
    if match is None:
        return 0
    name, number, top = match.groups()
    wanted: Path = (top,) if top else ("statement", int(number) - 1, *((name,) if name else ()))
    lines = lines_of(text)
    return lines.get(wanted) or lines.get(wanted[:2], 0)


def pretty(document: Mapping[str, object]) -> str:
    """A policy as people read it: the fields of a statement always in the same order."""
    statements = document.get("statement")
    ordered = [_ordered(item) for item in statements] if isinstance(statements, list) else statements
    return json.dumps({"id": document.get("id"), "statement": ordered}, indent=2, ensure_ascii=False)


def _ordered(statement: object) -> object:
    if not isinstance(statement, dict):
        return statement
    return dict(sorted(statement.items(), key=lambda item: (_ORDER.get(item[0], 3), item[0])))


def differences(saved: str, draft: str) -> list[tuple[str, str]]:
    """Lines as (`+`, `-` or a blank; text): those that differ with three around them. Empty if nothing does."""
    lines = difflib.unified_diff(saved.splitlines(), draft.splitlines(), lineterm="", n=3)
    diff = [line for line in lines if not line.startswith(("---", "+++"))]
    return [("…" if line.startswith("@@") else line[0], "" if line.startswith("@@") else line[1:]) for line in diff][1:]


def _line(text: str, number: int) -> str:
    lines = text.splitlines()
    return lines[number - 1].strip()[:200] if 0 < number <= len(lines) else ""
