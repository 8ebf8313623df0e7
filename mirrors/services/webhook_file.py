"""The file by which a source's repositories tell this deployment of their changes, ready to be committed there."""

from __future__ import annotations

from urllib.parse import urlsplit

import yaml

from core.errors import Invalid
from core.installations.webhook_action import FILLED_IN, lakefs_action
from deployment.wiring import region_settings


def webhook_file(region: str, address: str, secret: str = FILLED_IN) -> str:
    """Its text; lakeFS fills in the secret, unless one is given.

    `address` is this deployment's, as lakeFS reaches it. Raises Invalid and, for an unknown region, ConfigError.
    """
    region_settings.installation(region)
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise Invalid(f"'{address}' is not an address: it must begin with http:// or https://")
    url = f"{address.rstrip('/')}/hooks/lakefs/{region}"
    return yaml.safe_dump(lakefs_action(url, secret), sort_keys=False)
