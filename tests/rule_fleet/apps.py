"""What makes a process of LakeMirror one in which something is broken on purpose."""

from __future__ import annotations

import os

from django.apps import AppConfig

from tests.rule_fleet import SABOTAGE


class RuleFleetConfig(AppConfig):
    name = "tests.rule_fleet"
    label = "rule_fleet"

    def ready(self) -> None:
        """Last of all apps: whatever is patched here is what the others have loaded."""
        from tests.rule_fleet import sabotage

        sabotage.break_(os.environ[SABOTAGE])
