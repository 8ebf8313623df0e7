"""May somebody configure an export at all? Asked before the form of a new one is shown."""

from __future__ import annotations

from typing import Any

from core.access.policies import ALL, Right, branch_arn
from core.access.somewhere import has_somewhere
from rbac import services as rbac

CONFIGURE: Right = ("fs:ExportConfig", branch_arn(ALL, ALL))
"""To configure the export of any branch."""


def may_configure_some(user: Any) -> bool:
    """Whether there could be a branch whose export they configure."""
    signed_in = getattr(user, "is_authenticated", False) and user.is_active
    return signed_in and has_somewhere(rbac.policies_of(user), CONFIGURE, user.username)


def require_some_configuration(user: Any) -> None:
    """Return if there could be a branch whose export they configure. NotSignedIn, Denied."""
    rbac.require(user)
    if not may_configure_some(user):
        rbac.require(user, CONFIGURE)
