"""What is still being prepared, for every template."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from deployment import preparation


def context(request: HttpRequest) -> dict[str, Any]:
    """`preparing` for every template; falsy once all is ready."""
    return {"preparing": preparation.status()}
