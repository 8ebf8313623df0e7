"""What the tests of notifications share."""

from __future__ import annotations

from tests.fixtures import admin, api, documented, head, lm, olga, viewer

__all__ = ["admin", "api", "documented", "head", "lm", "olga", "viewer"]
