"""The TLS certificate with which a region's server shows who it is: from when and until when it is valid. Pure."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class ServerCertificate:
    """When it begins to be valid, and when it ends."""

    valid_from: datetime
    valid_until: datetime


def of_peer(fields: Mapping[str, Any]) -> ServerCertificate:
    """From what `ssl.SSLSocket.getpeercert` gives of a certificate that was verified. Raises ValueError for less."""
    begins, ends = (fields.get(name) for name in ("notBefore", "notAfter"))
    if not begins or not ends:
        raise ValueError("the certificate does not say how long it is valid")
    return ServerCertificate(*(datetime.fromtimestamp(ssl.cert_time_to_seconds(text), UTC) for text in (begins, ends)))
