"""How large the modules, folders and functions of the product are, and their bounds; with -s, the largest of each."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (
    *("core", "graveler", "adapters", "spark_jobs", "deployment", "db", "web", "audit", "jobs", "installations"),
    *("rbac", "mirrors", "mirroring", "exports", "replication", "notifications", "console"),
    *("lakemirror_site", "lakemirror"),
)
MODULE_LINES = 400
FOLDER_MODULES = 18
"""An __init__ doesn't count."""
FUNCTION_LINES = 43
"""From `def` to the last line, with the docstring and without decorators."""

SHOWN = 5
Sizes = list[tuple[int, str]]
"""How large, and what; the largest first."""


def modules(package: str) -> list[Path]:
    """The modules of a package, without migrations: those are generated."""
    return [path for path in (ROOT / package).rglob("*.py") if "migrations" not in path.relative_to(ROOT).parts]


def product() -> list[Path]:
    return [path for package in PACKAGES for path in modules(package)]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def module_lines() -> Sizes:
    return largest((len(path.read_text().splitlines()), name_of(path)) for path in product())


def folder_modules() -> Sizes:
    counted = Counter(name_of(path.parent) for path in product() if path.name != "__init__.py")
    return largest((number, folder) for folder, number in counted.items())


def function_lines() -> Sizes:
    return largest(
        ((node.end_lineno or node.lineno) - node.lineno + 1, f"{name_of(path)}: {node.name}")
        for path in product()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def largest(sizes: Iterable[tuple[int, str]]) -> Sizes:
    return sorted(sizes, key=lambda size: (-size[0], size[1]))


def hold(what: str, sizes: Sizes, bound: int) -> None:
    """Print the largest; an AssertionError names all that are above the bound."""
    print(f"\n{what}, {bound} at most:", *(f"{size:5}  {name}" for size, name in sizes[:SHOWN]), sep="\n")
    above = [f"{name} has {size}" for size, name in sizes if size > bound]
    assert not above, f"{what}, {bound} at most: {'; '.join(above)}"


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_is_measured(package: str) -> None:
    assert modules(package), f"{package} has no modules: was it renamed?"


def test_no_module_is_longer_than_one_reads_at_a_sitting() -> None:
    hold("lines of a module", module_lines(), MODULE_LINES)


def test_no_folder_has_more_modules_than_one_takes_in_at_a_glance() -> None:
    hold("modules of a folder", folder_modules(), FOLDER_MODULES)


def test_no_function_is_longer_than_the_longest_is_today() -> None:
    hold("lines of a function", function_lines(), FUNCTION_LINES)
