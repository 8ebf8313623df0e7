"""What a change of an export that is configured will do."""

from __future__ import annotations

from dataclasses import asdict

from core.exporting.change_effects import consequences
from exports.preflight.checks import Plan
from exports.services import exports


def changes_of(plan: Plan) -> list[str]:
    """In sentences; nothing of a new one."""
    if plan.export is None:
        return []
    before = {name: getattr(plan.export, name) for name in exports.SETTINGS}
    wish = plan.wish
    after = asdict(wish) | {"path": wish.path.rstrip("/"), "status_path": wish.status_path.rstrip("/")}
    after |= exports.kept(after, plan.export)
    return consequences(before, after, ever=bool(plan.export.last_success_ref or plan.export.attempted_path))
