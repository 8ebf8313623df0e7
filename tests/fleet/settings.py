"""The settings of LakeMirror for processes of the fleet."""

from __future__ import annotations

from lakemirror_site import settings

globals().update({name: value for name, value in vars(settings).items() if name.isupper()})
INSTALLED_APPS = [*settings.INSTALLED_APPS, "tests.fleet.apps.FleetConfig"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
