"""What people do with exports, and the right that each step needs."""

from __future__ import annotations

from collections.abc import Iterable

from core.access.policies import branch_arn
from core.access.policy_analysis import Place
from rbac.permission_catalog import Area, a_step, register

_BRANCH = branch_arn("{repository}", "{branch}")
_CONFIGURE, _RUN = ("fs:ExportConfig", _BRANCH), ("fs:RunExport", _BRANCH)

STEPS = (
    a_step("exports.see", "See an export", ("fs:ReadBranch", _BRANCH)),
    a_step("exports.configure", "Configure an export", _CONFIGURE),
    a_step("exports.pause", "Pause and resume an export", ("fs:PauseExport", _BRANCH)),
    a_step("exports.delete", "Delete an export", _CONFIGURE),
    a_step("exports.run", "Run an export", _RUN),
    a_step("exports.repair", "Repair an export", _RUN),
    a_step("exports.verify", "Verify an export", _RUN),
    a_step("exports.repair-drift", "Repair drift of an export", _RUN),
)


def register_exports() -> None:
    """Tell the access app."""
    register(Area("Exports", STEPS, _places))


def _places(most: int) -> Iterable[Place]:
    from exports.models import Export

    rows = Export.objects.filter(deleting=False).order_by("repository", "branch").values_list("repository", "branch")
    return ({"repository": repository, "branch": branch} for repository, branch in rows[:most])
