"""The file by which a source's repositories tell this deployment of their changes, ready to be committed there."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

import yaml

from core.errors import Invalid
from core.holding import MARGIN, MOST_COPIES
from core.installations.webhook_action import FILLED_IN, hold_action, lakefs_action
from deployment.wiring import region_settings


def webhook_file(region: str, address: str, secret: str = FILLED_IN) -> str:
    """Its text; lakeFS fills in the secret, unless one is given.

    `address` is this deployment's, as lakeFS reaches it. Raises Invalid and, for an unknown region, ConfigError.
    """
    return yaml.safe_dump(lakefs_action(_address(region, address, "lakefs"), secret), sort_keys=False)


def hold_file(
    region: str, address: str, secret: str = FILLED_IN, *, branches: Sequence[str], copies: int = 1, timeout: int = 60
) -> str:
    """The text of the file by which merges into some branches are held. Raises as `webhook_file` does."""
    if not branches or not all(branches):
        raise Invalid("name the branches, or globs of them, into which merges are to be held")
    if not 1 <= copies <= MOST_COPIES or not MARGIN < timeout <= 3600:
        raise Invalid(f"copies is 1 to {MOST_COPIES}, timeout {MARGIN + 1} to 3,600 seconds")
    action = hold_action(_address(region, address, "hold"), secret, branches=branches, copies=copies, timeout=timeout)
    return yaml.safe_dump(action, sort_keys=False)


def _address(region: str, address: str, kind: str) -> str:
    region_settings.require_lakefs(region)
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise Invalid(f"'{address}' is not an address: it must begin with http:// or https://")
    return f"{address.rstrip('/')}/hooks/{kind}/{region}"
