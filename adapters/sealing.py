"""Secrets sealed with a key: AES-256-GCM by `cryptography`. The one place that knows that library.

A sealed text is `1.<key>.<nonce and ciphertext>`. `key` tells which key it was sealed with, and not what it is, so
that another key is told apart from a text that somebody has changed. What the secret is about (whose it is, where it
is sent) is sealed with it: in another row, or with another address, it can't be opened.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from core.store_access import EXECUTORS_KEY, StoreAccess

NONCE_BYTES = 12
FOR_EXECUTORS = "store keys for executors"


class OtherKey(Exception):
    """It was sealed with another key."""


class Tampered(Exception):
    """It is not what was sealed, or not about the same thing."""


class Sealer:
    """Seals with one key: 64 hexadecimal digits, as `Config.derived_key` gives them."""

    def __init__(self, key: str) -> None:
        self._box = AESGCM(bytes.fromhex(key))
        self.key_id = hashlib.sha256(f"which key: {key}".encode()).hexdigest()[:12]

    def seal(self, text: str, about: str) -> str:
        """The text, for those who have the key; another result each time."""
        nonce = os.urandom(NONCE_BYTES)
        box = nonce + self._box.encrypt(nonce, text.encode(), about.encode())
        return f"1.{self.key_id}.{base64.urlsafe_b64encode(box).decode()}"

    def open(self, sealed: str, about: str) -> str:
        """The text again. Raises OtherKey, or Tampered."""
        version, _, rest = sealed.partition(".")
        key_id, _, box = rest.partition(".")
        if version != "1" or not box:
            raise Tampered
        if key_id != self.key_id:
            raise OtherKey
        try:
            raw = base64.b64decode(box, altchars=b"-_", validate=True)
            return self._box.decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], about.encode()).decode()
        except (InvalidTag, binascii.Error, ValueError) as error:
            raise Tampered from error


def seal_keys(key: str, access_key_id: str, secret_access_key: str, session_token: str) -> str:
    """A store's keys for executors."""
    return Sealer(key).seal(json.dumps([access_key_id, secret_access_key, session_token]), FOR_EXECUTORS)


def sealed_keys(access: StoreAccess) -> tuple[str, str, str] | None:
    """The keys that came with a job, in a process that was given the key to them; else None."""
    key = os.environ.get(EXECUTORS_KEY, "")
    if not access.sealed or not key:
        return None
    try:
        key_id, secret, token = json.loads(Sealer(key).open(access.sealed, FOR_EXECUTORS))
    except OtherKey:
        return None
    return key_id, secret, token
