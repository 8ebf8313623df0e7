"""What was found missing or wrong, before it is a row."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from core.mirroring.doubt import Suspect, address_crc
from core.mirroring.object_check import Reason

KEPT_PER_HOLDER = 1000
"""So many problems of one range are kept by name; `Coverage.problems` counts all of them."""
FOUND_BY_READING = (Reason.CONTENT, Reason.UNPROVEN, Reason.UNREADABLE)
"""What reading has found of an object, or may have."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something missing or wrong at the destination. `address` is relative to the namespace, or, if `full`, a URI."""

    kind: str
    holder_id: str
    address: str
    reason: str
    path: bytes = b""
    size: int | None = None
    etag: str = ""
    detail: str = ""
    gone_at_source: bool = False
    known_key: str = ""
    damage: bool = False
    full: bool | None = None
    must_read: bool = False
    unneeded: bool = False

    @property
    def suspect(self) -> Suspect:
        """What may be named by other ranges too, of an object."""
        return Suspect(self.path, address_crc(self.address))

    @property
    def key(self) -> str:
        """What tells problems of one holder apart."""
        return self.known_key or hashlib.sha256(self.address.encode() + b"\0" + self.path).hexdigest()
