"""Is an object at a target the one that its source has? Pure."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from core.proof_of_parts import is_proven
from core.types import ObjectInfo


class Alike(StrEnum):
    """What is known of two objects of one key. In doubt: only what HEAD tells of both can say."""

    EQUAL = "equal"
    DIFFERENT = "different"
    DOUBT = "doubt"


def by_listing(size: int, etag: str, there: tuple[int, str] | None) -> Alike:
    """What listings say of an object of the source and of what is `there` (size, ETag; None: nothing). Other ETags are
    no proof: encryption by KMS, or other parts, give the same bytes another one."""
    if there is None or there[0] != size:
        return Alike.DIFFERENT
    return Alike.EQUAL if there[1] == etag else Alike.DOUBT


def by_heads(source: ObjectInfo, there: ObjectInfo | None, uri: str, proof_key: str, *, later: bool = True) -> Alike:
    """What HEAD says of both; `uri` is the target's, `later` whether that was written after the source's. Never in
    doubt.

    Equal are the same size and ETag; the same size, where encryption makes an ETag that is no hash of the content, if
    it was written later; and the same size in other parts, if our proof says that each was compared.
    """
    if there is None or there.size != source.size:
        return Alike.DIFFERENT
    if there.etag == source.etag:
        return Alike.EQUAL
    if not (there.etag_is_content and source.etag_is_content):
        return Alike.EQUAL if later else Alike.DIFFERENT
    return Alike.EQUAL if is_proven(proof_key, uri, there, source) else Alike.DIFFERENT


def is_later(there: datetime | None, source: datetime | None) -> bool:
    """Whether a target's object was written after its source's, as far as their stores tell when: in whole seconds, so
    one of the same second may be the older one."""
    return there is None or source is None or there > source
