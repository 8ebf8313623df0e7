"""What the tests of HTTP share."""

from __future__ import annotations

from tests.fixtures import admin, api, documented, head, lm, olga, viewer
from tests.web.api_calls import owner_there, real, worked

__all__ = ["admin", "api", "documented", "head", "lm", "olga", "owner_there", "real", "viewer", "worked"]
