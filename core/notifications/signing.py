"""How a message to a webhook is signed, so that its receiver knows whose it is and that it is not an old one.

`LakeMirror-Signature: t=<Unix time>,v1=<hex HMAC-SHA256 of "<t>.<body>">`, with the channel's secret.
"""

from __future__ import annotations

import hashlib
import hmac

SIGNATURE, DELIVERY = "LakeMirror-Signature", "LakeMirror-Delivery"


def signature(secret: str, body: bytes, at: int) -> str:
    """The value of the header for a body that is sent at a Unix time."""
    digest = hmac.new(secret.encode(), str(at).encode() + b"." + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"
