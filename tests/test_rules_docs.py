"""The page that names a test for each rule names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs/rules-tests.md").read_text()
ROWS = re.findall(r"^\| (.+) \| `([^`]+)::([^`]+)` \|$", PAGE, re.MULTILINE)


def test_every_row_names_a_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("|") and not line.startswith(("| rule", "|---"))]
    assert len(rows) == len(ROWS) > 50


@pytest.mark.parametrize(("file", "test"), sorted({(file, test) for _, file, test in ROWS}))
def test_every_test_that_is_named_exists(file: str, test: str) -> None:
    tree = ast.parse((ROOT / file).read_text())
    assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
