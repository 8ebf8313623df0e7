"""Addresses by which anybody may read one object for a while: signed with our credentials, so a secret until then."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from core.errors import Unauthenticated
from core.types import PresignedUrl


def presigned_get(client: Any, credentials: Any, *, bucket: str, key: str, seconds: int, where: str) -> PresignedUrl:
    """The address of a GET. `credentials` are those of the client: temporary ones end earlier, and the address with
    them. Asks no store. Raises Unauthenticated without credentials."""
    if credentials is None:
        raise Unauthenticated(f"no credentials for {where} (sign an address)")
    credentials.get_frozen_credentials()  # temporary ones are renewed here, if they are about to end
    now = datetime.now(UTC)
    expires_at = now + timedelta(seconds=seconds)
    ends_at = getattr(credentials, "_expiry_time", None)  # botocore has no other way to ask
    if ends_at is not None and ends_at < expires_at:
        expires_at = ends_at
    lasting = max(1, int((expires_at - now).total_seconds()))
    url = client.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": key}, ExpiresIn=lasting)
    return PresignedUrl(str(url), expires_at)
