"""The file by which a source's repositories tell this deployment of their changes, ready to be committed there."""

from __future__ import annotations

from urllib.parse import urlsplit

import yaml

from core.errors import Invalid
from core.installations.webhook_action import lakefs_action
from deployment import config
from deployment.wiring import region_settings


def webhook_file(region: str, address: str, secret: str = "") -> str:
    """Its text, with the source's own secret unless another text stands for it.

    `address` is this deployment's, as lakeFS reaches it. Raises Invalid and, for an unknown region, ConfigError.
    """
    region_settings.installation(region)
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise Invalid(f"'{address}' is no address: it begins with http:// or https://")
    url = f"{address.rstrip('/')}/hooks/lakefs/{region}"
    shown = secret or str(config.current().hook_secret(region))
    return yaml.safe_dump(lakefs_action(url, shown), sort_keys=False)
