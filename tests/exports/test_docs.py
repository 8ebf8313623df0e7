"""The page that names a test for each rule of exports names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROWS = re.findall(r"\| `(tests/[^`]+)::([^`]+)` \|$", (ROOT / "docs/exports-tests.md").read_text(), re.MULTILINE)


def test_there_are_rows() -> None:
    assert len(ROWS) > 20


@pytest.mark.parametrize(("file", "test"), sorted(set(ROWS)))
def test_every_test_that_is_named_exists(file: str, test: str) -> None:
    tree = ast.parse((ROOT / file).read_text())
    assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
