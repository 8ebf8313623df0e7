"""Whose deployment the pages belong to."""

from __future__ import annotations

from django.http import HttpRequest

from deployment import config


def context(request: HttpRequest) -> dict[str, str]:
    """`organization` for every template: its name, "" when none is configured."""
    return {"organization": config.current().organization_name}
