"""The pages that name a test for each rule, or scenario, name tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = {name: (ROOT / f"docs/{name}.md").read_text() for name in ("rules-tests", "replication-tests")}
ROWS = {name: re.findall(r"^\| (.+) \| `([^`]+)::([^`]+)` \|$", text, re.MULTILINE) for name, text in PAGES.items()}


@pytest.mark.parametrize(("page", "fewest"), [("rules-tests", 50), ("replication-tests", 40)])
def test_every_row_names_a_test(page: str, fewest: int) -> None:
    heads = ("| rule", "| situation", "|---")
    rows = [line for line in PAGES[page].splitlines() if line.startswith("|") and not line.startswith(heads)]
    assert len(rows) == len(ROWS[page]) > fewest


@pytest.mark.parametrize(("file", "test"), sorted({(file, test) for rows in ROWS.values() for _, file, test in rows}))
def test_every_test_that_is_named_exists(file: str, test: str) -> None:
    tree = ast.parse((ROOT / file).read_text())
    assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_situation_of_a_rule_has_a_row() -> None:
    """By number, in order; those of mirrors stand elsewhere."""
    told = [int(found[1]) for text, _, _ in ROWS["replication-tests"] if (found := re.match(r"(\d+): ", text))]
    assert told == sorted(told)
    elsewhere, to_come = {33}, {5, 17, 34, 35}
    assert set(range(1, 39)) - elsewhere - to_come <= set(told) <= set(range(1, 39)) - elsewhere
