"""Complaints about a policy's text name the line, and a draft is compared with what is saved."""

from __future__ import annotations

import pytest

from core.access.policies import Policy
from core.access.policy_text import Wrong, differences, line_of, read

GOOD = """{
  "id": "p",
  "statement": [
    {"effect": "allow", "action": ["fs:Read*"], "resource": "*"},
    {
      "effect": "allow",
      "action": [
        "fs:{odd, \\" name]"
      ],
      "resource": "*"
    }
  ]
}"""


@pytest.mark.parametrize(
    ("field", "line"),
    [
        ("id", 2),
        ("statement 1", 4),
        ("action of statement 1", 4),
        ("statement 2", 5),
        ("effect of statement 2", 6),
        ("action of statement 2", 7),
        ("resource of statement 2", 10),
        ("statement", 3),
        ("policy", 0),
        ("nix of statement 2", 5),
    ],
)
def test_a_field_is_found_on_its_line(field: str, line: int) -> None:
    assert line_of(GOOD, field) == line


def test_what_is_wrong_is_told_with_its_line() -> None:
    assert read(GOOD) == Wrong(read(GOOD).message, 7, '"action": [')  # type: ignore[union-attr]
    broken = read('{\n "id": "p",,\n}')
    assert isinstance(broken, Wrong) and (broken.line, broken.text) == (2, '"id": "p",,')
    assert isinstance(read(GOOD.replace('fs:{odd, \\" name]', "fs:*")), Policy)
    odd = ('{"statement": 4}', '{"id": "p", "statement": [4, []]}', '{"": [1]}')
    for text in ("", "[]", "3", '"x"', "null", "[" * 100_000, *odd):
        assert isinstance(read(text), Wrong)


def test_a_draft_is_compared_line_by_line() -> None:
    assert differences("a\nb", "a\nb") == []
    assert differences("a\nb\nc", "a\nB\nc") == [(" ", "a"), ("-", "b"), ("+", "B"), (" ", "c")]
