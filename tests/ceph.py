"""A real Ceph gateway (radosgw), for tests that are skipped without one.

LAKEMIRROR_TEST_CEPH names it with the keys of a user: http://key:secret@host:port. Buckets are made there, and stay: it
should be nobody else's.
"""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.config import Config

ADDRESS = os.environ.get("LAKEMIRROR_TEST_CEPH", "")
real_ceph = pytest.mark.skipif(not ADDRESS, reason="LAKEMIRROR_TEST_CEPH names no gateway")
_PARTS = urlsplit(ADDRESS)
ENDPOINT = f"{_PARTS.scheme}://{_PARTS.hostname}:{_PARTS.port}"
KEYS = {"access_key_id": _PARTS.username or "", "secret_access_key": _PARTS.password or ""}


def client() -> Any:
    """What asks it; by the rules of before, for it drops checksums that it does not know."""
    told = {f"aws_{name}": value for name, value in KEYS.items()}
    config = Config(s3={"addressing_style": "path"}, request_checksum_calculation="when_required")
    return boto3.client("s3", endpoint_url=ENDPOINT, region_name="us-east-1", config=config, **told)
