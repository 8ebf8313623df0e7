"""A place is an address in a store. At another endpoint the same address is another place: buckets may share a name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

AWS = "aws"
_USUAL_PORTS = {None, 80, 443}


@lru_cache(maxsize=1024)
def store_at(endpoint: str) -> str:
    """Which store an endpoint leads to: its host, and its port unless it is a usual one. AWS is one store, however it
    is reached, for there a bucket's name is given once; so is an empty endpoint."""
    parts = urlsplit(endpoint)
    host = (parts.hostname or "").rstrip(".")
    if not host or f".{host}".endswith((".amazonaws.com", ".amazonaws.com.cn")):
        return AWS
    return host if parts.port in _USUAL_PORTS else f"{host}:{parts.port}"


def inside(inner: str, outer: str) -> bool:
    """Whether an address is another one of the same store, or lies in it."""
    return (inner.rstrip("/") + "/").startswith(outer.rstrip("/") + "/")


def overlap(address: str, other: str) -> bool:
    """Whether one of two addresses of the same store holds the other."""
    return inside(address, other) or inside(other, address)


@dataclass(frozen=True, slots=True)
class Place:
    """An address in a store, as `store_at` names it; None where nobody knows which: then it may be in any."""

    uri: str
    store: str | None

    def __str__(self) -> str:
        return self.uri

    def in_store_of(self, other: Place) -> bool:
        """Whether both may be in one store."""
        return self.store == other.store or None in (self.store, other.store)

    def overlaps(self, other: Place) -> bool:
        """Whether one of the two holds the other, as far as anybody knows."""
        return self.in_store_of(other) and overlap(self.uri, other.uri)
