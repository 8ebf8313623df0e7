"""Which keys of a place a rule copies. Pure. Keys are relative to the place."""

from __future__ import annotations

from datetime import datetime

LONGEST_KEY = 1024
"""Bytes in UTF-8, of a whole key."""
OWN_FOLDER = "_lakemirror/"
PROBE = "_lakemirror_probe_"


def is_own(key: str) -> bool:
    """Whether LakeMirror keeps or tries something there: in the place itself, or in one that lies below it."""
    name = key.rpartition("/")[2]
    return key.startswith(OWN_FOLDER) or f"/{OWN_FOLDER}" in key or name.startswith(PROBE)


def is_copied(key: str) -> bool:
    """Whether rules copy such a key at all. The place's own directory object has no name in it."""
    return key != "" and not is_own(key)


def fits(prefix: str, key: str) -> bool:
    """Whether the key at the target is no longer than keys may be. `prefix`: the target's, with its slash."""
    return len((prefix + key).encode()) <= LONGEST_KEY


def in_time(modified: datetime | None, made: datetime, *, existing: bool, new: bool) -> bool:
    """Whether a rule that was made then wants an object that was last written at `modified` (None: nobody knows).
    Stores tell whole seconds, often: of one of the very second nobody knows, either."""
    if modified is None or modified.replace(microsecond=0) == made.replace(microsecond=0):
        return existing or new
    return existing if modified < made else new
