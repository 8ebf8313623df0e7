"""Where a range ends: lakeFS's rule for cutting a sorted run of entries into ranges.

A range ends after a key whose FNV-1a-64 is a multiple of 50,000, so that unrelated writers cut at the same keys;
at the latest it ends when the file's estimated size reaches 20 MiB.
"""

from __future__ import annotations

from dataclasses import dataclass

from graveler.sstable.blocks import shared_prefix

_OFFSET_BASIS, _PRIME, _MASK = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class SplitRule:
    """lakeFS's settings `committed.permanent.*`, at their defaults."""

    min_size: int = 0
    max_size: int = 20 << 20
    raggedness: int = 50_000


LAKEFS_RULE = SplitRule()


class Splitter:
    """Asked after each key: does the range end here? Remembers the hash of the last key's beginnings,
    since neighbours in a range share most of their bytes."""

    def __init__(self, rule: SplitRule = LAKEFS_RULE) -> None:
        self._rule = rule
        self._key = b""
        self._states = [_OFFSET_BASIS]

    def ends_after(self, key: bytes, estimated_size: int) -> bool:
        """True if no further entry belongs into this range."""
        if estimated_size < self._rule.min_size:
            return False
        return estimated_size >= self._rule.max_size or self._hash(key) % self._rule.raggedness == 0

    def _hash(self, key: bytes) -> int:
        shared = shared_prefix(self._key, key)
        del self._states[shared + 1 :]
        state = self._states[shared]
        for byte in key[shared:]:
            state = (state ^ byte) * _PRIME & _MASK
            self._states.append(state)
        self._key = key
        return state
