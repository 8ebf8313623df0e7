"""Every right that the code asks for is needed by a step, and steps need nothing else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from rbac import permission_catalog

ROOT = Path(__file__).resolve().parents[2]
ACTION = re.compile(r"(fs|auth):[A-Z][A-Za-z]+")
ASKING = {"allowed", "permission_required", "decide"}


def is_action(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(ACTION.fullmatch(node.value))


def asked(tree: ast.AST) -> Iterator[str]:
    """Actions beside an ARN, as `require` takes them, and those given to what asks for one right."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple) and len(node.elts) == 2 and [*map(is_action, node.elts)] == [True, False]:
            yield node.elts[0].value  # type: ignore[attr-defined]
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in ASKING:
            yield from (one.value for one in node.args if is_action(one))  # type: ignore[attr-defined]


TOLD_IN = {
    "rbac/permission_catalog.py",
    "rbac/services/builtin.py",
    "mirrors/services/permissions.py",
    "exports/services/permissions.py",
    "notifications/permissions.py",
}
"""Where steps and policies are written down, not asked for."""


APPS = (
    *("web", "audit", "jobs", "rbac", "installations"),
    *("mirrors", "mirroring", "exports", "replication", "notifications", "console", "lakemirror_site"),
)


def sources() -> Iterator[Path]:
    for app in (
        "web",
        "audit",
        "jobs",
        "rbac",
        "installations",
        "mirrors",
        "mirroring",
        "exports",
        "replication",
        "notifications",
        "console",
        "lakemirror_site",
    ):
        yield from (path for path in (ROOT / app).rglob("*.py") if str(path.relative_to(ROOT)) not in TOLD_IN)


def test_every_right_that_is_asked_for_is_in_a_step() -> None:
    needed = {need.action for area in permission_catalog.areas() for step in area.steps for need in step.needs}
    found = {action for path in sources() for action in asked(ast.parse(path.read_text()))}
    assert {"fs:DeleteRepository", "fs:ExportConfig", "auth:ReadUser"} <= found
    assert found - needed == set(), "write these into the steps of the app that asks for them"
    words = " ".join(path.read_text() for path in sources())
    assert {action for action in needed if action.partition(":")[2] not in words} == set()


def test_a_step_has_a_name_of_its_own() -> None:
    every = [step for area in permission_catalog.areas() for step in area.steps]
    assert len({step.key for step in every}) == len({step.title for step in every}) == len(every)
