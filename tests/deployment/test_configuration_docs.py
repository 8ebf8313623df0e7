"""The documentation of the configuration knows every field, and every test that it names exists."""

from __future__ import annotations

import ast
import re

import pytest

from deployment import config
from deployment.reader import leaves

DOCS = config.BASE_DIR / "docs"
ROW = re.compile(r"^\| `([a-z0-9_.]+)` \| (?:`([^`]+)::([^`]+)`|not used) \|$", re.MULTILINE)
FIELDS = [path for path, _ in leaves(config.Config)]
ROWS = ROW.findall((DOCS / "configuration-tests.md").read_text())


def section(title: str) -> str:
    """A section of the page about the configuration."""
    return (DOCS / "configuration.md").read_text().split(f"## {title}\n")[1].split("\n## ")[0]


def test_every_field_has_one_row() -> None:
    assert sorted(field for field, _, _ in ROWS) == sorted(FIELDS)
    assert (DOCS / "configuration-tests.md").read_text().count("\n| `") == len(ROWS)


@pytest.mark.parametrize(("file", "test"), sorted({(file, test) for _, file, test in ROWS if file}))
def test_every_test_that_is_named_exists(file: str, test: str) -> None:
    tree = ast.parse((config.BASE_DIR / file).read_text())
    assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_what_is_not_used_is_said_to_be_so() -> None:
    rows = [line for line in section("Accepted, not used").splitlines() if line.startswith("| `")]
    said = {field for row in rows for field in re.findall(r"`([a-z0-9_.]+)`", row.split("|")[1])}
    assert said == {field for field, file, _ in ROWS if not file}


@pytest.mark.parametrize("field", FIELDS)
def test_the_page_about_the_configuration_tells_of_every_field(field: str) -> None:
    *_, last = field.split(".")
    assert re.search(rf"[`.]{last}[`:]", (DOCS / "configuration.md").read_text()), f"{field} is not told of"
