"""Signature version 4 for S3, in a fifth of botocore's time: it is a quarter of what a request of a few bytes costs.

URLs have to be as `FastObjectStore.url` makes them: quoted as S3 quotes, and not normalized.
"""

from __future__ import annotations

import hmac
import threading
import time
from collections.abc import Mapping
from hashlib import sha256
from urllib.parse import urlsplit

ALGORITHM = "AWS4-HMAC-SHA256"
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_EMPTY = sha256(b"").hexdigest()
_UNSIGNED = "UNSIGNED-PAYLOAD"


class Signer:
    """Signs for one region. Keeps the key that is derived from the secret for the day."""

    def __init__(self, region: str) -> None:
        self._region = region
        self._lock = threading.Lock()
        self._made_of: tuple[str, str] = ("", "")
        self._key = b""

    def signed(
        self,
        access_key: str,
        secret: str,
        token: str,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        unsigned: bool = False,
    ) -> dict[str, str]:
        """The headers with those that sign them, and the body, now. `unsigned`: not the body, if there is a Content-MD5
        among the headers, for that is signed."""
        when = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time()))  # without an argument it lags by milliseconds
        hashed = _UNSIGNED if unsigned and _has_md5(headers) else sha256(body).hexdigest() if body else _EMPTY
        to_sign = {**headers, "X-Amz-Date": when, "X-Amz-Content-SHA256": hashed}
        if token:
            to_sign["X-Amz-Security-Token"] = token
        scope = f"{when[:8]}/{self._region}/s3/aws4_request"
        names, request = _canonical(method, url, to_sign)
        text = f"{ALGORITHM}\n{when}\n{scope}\n{sha256(request.encode()).hexdigest()}"
        signature = _mac(self._key_of(secret, when[:8]), text).hex()
        credential = f"{ALGORITHM} Credential={access_key}/{scope}"
        return {**to_sign, "Authorization": f"{credential}, SignedHeaders={names}, Signature={signature}"}

    def _key_of(self, secret: str, day: str) -> bytes:
        with self._lock:
            if self._made_of != (secret, day):
                key = f"AWS4{secret}".encode()
                for part in (day, self._region, "s3", "aws4_request"):
                    key = _mac(key, part)
                self._made_of, self._key = (secret, day), key
            return self._key


def _has_md5(headers: Mapping[str, str]) -> bool:
    return any(name.lower() == "content-md5" for name in headers)


def _mac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")


def _canonical(method: str, url: str, headers: Mapping[str, str]) -> tuple[str, str]:
    """(names of the signed headers, the request in the form that is signed)."""
    parts = urlsplit(url)
    lines = {name.lower(): " ".join(value.split()) for name, value in headers.items()}
    lines["host"] = parts.netloc.removesuffix(_DEFAULT_PORTS.get(parts.scheme, ""))
    names = ";".join(sorted(lines))
    query = "&".join(sorted(parts.query.split("&")))
    header_text = "".join(f"{name}:{lines[name]}\n" for name in sorted(lines))
    return names, f"{method}\n{parts.path or '/'}\n{query}\n{header_text}\n{names}\n{lines['x-amz-content-sha256']}"
