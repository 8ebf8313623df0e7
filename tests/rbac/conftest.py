"""What the tests of access share."""

from __future__ import annotations

from tests.fixtures import admin, api, documented, head, lm, olga, viewer
from tests.rbac.elsewhere import tell, there

__all__ = ["admin", "api", "documented", "head", "lm", "olga", "tell", "there", "viewer"]
