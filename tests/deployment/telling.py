"""To be the deployment of a region, for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from deployment import config
from tests.deployment.test_config import changed

REGIONS = ("us-east-1", "eu-west-1", "ap-south-1")


@contextmanager
def as_deployment_of(region: str, **more: Any) -> Iterator[None]:
    """It knows REGIONS and serves this one, unless `more`, as in a configuration file, says otherwise."""
    others = {name: f"http://{name}" for name in REGIONS if name != region}
    told = config.parse(changed("region", region) | {"dst_endpoints": others, "serve_regions": [region]} | more)
    with mock.patch.object(config, "current", lambda: told):
        yield
