"""The page that names a test for each answer names tests that exist, and leaves out no call."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.console.test_api_docs import URLS, calls_of, shape

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/answers-tests.md").read_text()
ROWS = re.findall(r"^\| (.+) \| `([^`]+)::([^`]+)` \|$", PAGE, re.MULTILINE)
OF_A_MIRROR = "## Asking and telling one mirror"


def calls_shown() -> Iterator[tuple[str, str]]:
    base = ""
    for line in PAGE.splitlines():
        if line.startswith("## "):
            base = "repositories/{}/mirrors/{}/" if line == OF_A_MIRROR else ""
        if found := re.match(r"\| (GET|POST|PUT|PATCH|DELETE) ((?:`[^`]+`(?:, )?)+)", line):
            yield from ((found[1], shape(base + address)) for address in re.findall(r"`([^`]+)`", found[2]))


def test_every_row_names_a_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and "| test |" not in line]
    assert len(rows) == len(ROWS) > 100


@pytest.mark.parametrize(("file", "test"), sorted({(file, test) for _, file, test in ROWS}))
def test_every_test_that_is_named_exists(file: str, test: str) -> None:
    tree = ast.parse((ROOT / file).read_text())
    assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_no_call_is_left_out() -> None:
    assert set(calls_of(URLS)) - set(calls_shown()) == set()
