"""Proof that a copy in other parts was compared with its source, part by part, while it was made. Pure.

Such a copy has another ETag than its source, so nothing that the stores tell shows them to be alike. Whoever copied it
signs what both had then: in metadata of the copy, for where it lies.
"""

from __future__ import annotations

import hashlib
import hmac
import json

from core.types import ObjectInfo

PROOF_HEADER = "x-amz-meta-lakemirror-proof"
PURPOSE = "proof of parts"
"""What the key is derived for."""


def signature(key: str, uri: str, *, size: int, source_etag: str, own_etag: str) -> str:
    """What says, to those who have the key, that the object at this URI had the bytes of a source with that ETag."""
    told = json.dumps([uri, size, source_etag, own_etag])
    return hmac.new(key.encode(), told.encode(), hashlib.sha256).hexdigest()


def is_proven(key: str, uri: str, info: ObjectInfo, original: ObjectInfo) -> bool:
    """Whether a copy bears such a proof, for what it is now and what its source is now."""
    if not key or not info.proof or info.size != original.size:
        return False
    if not info.etag_is_content or not original.etag_is_content:
        return False
    signed = signature(key, uri, size=info.size, source_etag=original.etag, own_etag=info.etag)
    return hmac.compare_digest(signed, info.proof)
