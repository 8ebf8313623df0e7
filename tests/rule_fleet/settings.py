"""The settings of LakeMirror for processes of the fleet, where something is broken on purpose."""

from __future__ import annotations

from lakemirror_site import settings

globals().update({name: value for name, value in vars(settings).items() if name.isupper()})
INSTALLED_APPS = [*settings.INSTALLED_APPS, "tests.rule_fleet.apps.RuleFleetConfig"]
