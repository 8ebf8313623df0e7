"""What people do with mirrors, and the rights that each step needs."""

from __future__ import annotations

from collections.abc import Iterable

from core.access.mirror_rights import to_approve, to_operate, to_see
from core.access.policies import ALL, auth_arn, namespace_arn, object_arn, repository_arn
from core.access.policy_analysis import Place
from deployment import config
from rbac.permission_catalog import Area, a_step, register

_SOURCE, _MIRROR, _NAMESPACE = repository_arn("{source}"), repository_arn("{mirror}"), namespace_arn("{namespace}")
_CHANGE, _OPERATE = ("fs:MirrorRepository", _SOURCE), to_operate("{source}", "{mirror}")

STEPS = (
    a_step("mirrors.see", "See a mirror, its jobs and its alerts", to_see("{mirror}")),
    a_step(
        "mirrors.create",
        "Create a mirror",
        _CHANGE,
        ("fs:CreateRepository", _MIRROR),
        ("fs:AttachStorageNamespace", _NAMESPACE),
    ),
    a_step("mirrors.change", "Edit a mirror's settings", _CHANGE),
    a_step("mirrors.pause", "Pause and resume a mirror", _OPERATE),
    a_step("mirrors.copying", "Pause, resume and limit copying for a managed mirror", _OPERATE),
    a_step("mirrors.sync", "Sync a mirror now", _OPERATE),
    a_step("mirrors.sweep", "Sweep a mirror now", _OPERATE),
    a_step("mirrors.validate", "Validate a mirror, and stop a check", _OPERATE),
    a_step(
        "mirrors.services.repair",
        "Retry what is missing, bring it and stop bringing it, repair and prioritise a commit",
        _OPERATE,
    ),
    a_step("mirrors.unreplicated", "Count what was never replicated, and download its manifest", _OPERATE),
    a_step("mirrors.preflight", "Check what a mirror's settings ask for", _OPERATE),
    a_step("mirrors.waive", "Waive a commit", _CHANGE),
    a_step("mirrors.approve", "Approve or reject what a sweep would delete", to_approve("{mirror}")),
    a_step("mirrors.reset", "Undo what others wrote to a mirror's branch", _CHANGE),
    a_step("mirrors.api.webhooks", "See the webhook's secret", _CHANGE),
    a_step("objects.locate", "Locate an object, and read it", ("fs:ReadObject", object_arn("{source}", "{path}"))),
    a_step(
        "objects.imported",
        "Locate an object that was imported, wherever it is",
        ("fs:ReadObject", object_arn("{source}", "{path}")),
        ("fs:ImportFromStorage", namespace_arn(ALL)),
    ),
    a_step("mirrors.delete", "Delete a mirror", ("fs:DeleteRepository", _MIRROR)),
)

_INSTALLATION = auth_arn("installation", "{region}")
INSTALLATIONS = (
    a_step("installations.see", "See installations", ("fs:ListInstallations", ALL)),
    a_step("installations.add", "Add an installation", ("auth:CreateInstallation", _INSTALLATION)),
    a_step("installations.change", "Edit an installation", ("auth:UpdateInstallation", _INSTALLATION)),
    a_step("installations.delete", "Delete an installation", ("auth:DeleteInstallation", _INSTALLATION)),
    a_step("installations.test", "Test an installation", ("auth:TestInstallation", _INSTALLATION)),
)


def register_mirrors() -> None:
    """Tell the access app."""
    register(Area("Mirrors", STEPS, _places))
    register(Area("Installations", INSTALLATIONS, _regions))


def _regions(most: int) -> Iterable[Place]:
    return ({"region": region} for region in config.current().regions[:most])


def _places(most: int) -> Iterable[Place]:
    from mirrors.models import Mirror

    rows = Mirror.objects.live().order_by("name").values_list("source__name", "name", "storage_namespace")
    return (
        {"source": source, "mirror": name, "namespace": namespace, "path": ALL}
        for source, name, namespace in rows[:most]
    )
