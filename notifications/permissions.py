"""What people do with alerts and channels, and the right that each step needs. To see an alert is to see what it is
about."""

from __future__ import annotations

from collections.abc import Iterable

from core.access.policies import ALL, alert_arn, auth_arn, maintenance_arn
from core.access.policy_analysis import Place
from rbac.permission_catalog import Area, a_step, register

_CHANNEL = auth_arn("channel", "{channel}")
_WINDOW = maintenance_arn("{window}")
STEPS = (
    a_step("alerts.answer", "Acknowledge and snooze an alert", ("fs:AcknowledgeAlert", alert_arn("{alert}"))),
    a_step("maintenance.manage", "Create and end a maintenance window", ("fs:ManageMaintenance", _WINDOW)),
    a_step("channels.see", "See channels, and what was sent by them", ("auth:ListChannels", ALL)),
    a_step("channels.create", "Create a channel", ("auth:CreateChannel", _CHANNEL)),
    a_step("channels.change", "Change a channel", ("auth:UpdateChannel", _CHANNEL)),
    a_step("channels.delete", "Delete a channel", ("auth:DeleteChannel", _CHANNEL)),
    a_step("channels.test", "Test a channel", ("auth:TestChannel", _CHANNEL)),
)


def register_notifications() -> None:
    """Tell the access app."""
    register(Area("Notifications", STEPS, _places))


def _places(most: int) -> Iterable[Place]:
    from notifications.models import Alert, Channel, MaintenanceWindow

    yield {"window": "new"}
    windows = MaintenanceWindow.objects.order_by("-pk").values_list("pk", flat=True)
    yield from ({"window": str(key)} for key in windows[:most])
    yield from ({"channel": name} for name in Channel.objects.values_list("name", flat=True)[:most])
    yield from ({"alert": str(key)} for key in Alert.objects.open().order_by("-pk").values_list("pk", flat=True)[:most])
