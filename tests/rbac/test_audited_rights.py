"""What a service writes down is the very right that it asked for, not one that is told again beside it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SERVICES = (
    *sorted((ROOT / "mirrors" / "services").rglob("*.py")),
    *sorted((ROOT / "exports" / "services").glob("*.py")),
    *sorted((ROOT / "replication" / "services").glob("*.py")),
    ROOT / "installations" / "services.py",
    ROOT / "notifications" / "channels" / "services.py",
    ROOT / "notifications" / "answers.py",
    ROOT / "console" / "jobs" / "listing.py",
)
BY_THE_MACHINE = {
    "mirrors/services/rebuild.py: _make",
    "installations/services.py: _note_resealed",
    "notifications/channels/services.py: _note_resealed",
}
BY_ITS_CHECKS = {"mirrors/services/mirrors.py: mirror_create"}
"""`check_creation` asks; test_matrix.py sees that it asks for what is written down."""


GIVING_THE_RIGHT = ("require_any", "require_operation", "require_change")
"""These ask, and give the right by which it is allowed."""


def calls_of(function: ast.AST, *names: str) -> Iterator[ast.Call]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in names:
                yield node


def audited(call: ast.Call) -> str:
    """What stands for the right in a call of `audit`, or of a module's own `_audit(actor, right, ...)`."""
    given = next((one.value for one in call.keywords if one.arg == "right"), None)
    return ast.unparse(given if given is not None else call.args[1])


def functions() -> list[tuple[str, ast.FunctionDef]]:
    found = []
    for path in SERVICES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name != "_audit" and any(calls_of(node, "audit", "_audit")):
                found.append((f"{path.relative_to(ROOT)}: {node.name}", node))
    return found


def helpers_of(path: Path) -> Iterator[str]:
    """A module's own functions that ask, and give the right by which it is allowed."""
    for node in ast.parse(path.read_text()).body:
        gives = isinstance(node, ast.FunctionDef) and node.returns is not None and ast.unparse(node.returns) == "Right"
        if gives and any(calls_of(node, "require", *GIVING_THE_RIGHT)):
            yield node.name


@pytest.mark.parametrize(("where", "function"), functions(), ids=lambda it: it if isinstance(it, str) else "")
def test_a_service_audits_the_right_that_it_asked_for(where: str, function: ast.FunctionDef) -> None:
    if where in BY_THE_MACHINE | BY_ITS_CHECKS:
        pytest.skip("nobody asks, or others do")
    asked = {ast.unparse(one) for call in calls_of(function, "require") for one in call.args[1:]}
    giving = (*GIVING_THE_RIGHT, *helpers_of(ROOT / where.split(":")[0]))
    asked |= {
        ast.unparse(target)
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and any(calls_of(node, *giving))
        for target in node.targets
    }
    assert {audited(call) for call in calls_of(function, "audit", "_audit")} <= asked


def test_all_services_that_write_something_down_are_read() -> None:
    names = {name for name, _ in functions()}
    assert len(names) >= 20
    assert names >= BY_THE_MACHINE | BY_ITS_CHECKS
