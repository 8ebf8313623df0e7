"""The patterns of an export over whole columns, by Arrow's RE2. The same as `adapters/regex.py` says key by key."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from core.exporting.markers import MARKER
from core.exporting.patterns import at_the_end


def matching(directories: pa.Array, patterns: Sequence[str]) -> pa.Array:
    """Which directories get a marker."""
    return _any(directories, [pc.match_substring_regex(_text(directories), pattern) for pattern in patterns])


def last_keys(paths: pa.Array, patterns: Sequence[str]) -> pa.Array:
    """Which keys come after all others of their directory."""
    masks = [pc.match_substring_regex(_text(paths), rf"(?:^|/){MARKER.decode()}\z")]
    for pattern in patterns:
        ending = _matching_end(_text(paths), pattern)
        if pc.any(ending).as_py():
            masks.append(pc.and_not(ending, pc.match_substring_regex(_directories(paths), pattern)))
    return _any(paths, masks)


def _directories(paths: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(_text(paths), r"[^/]*\z", "")


def _text(keys: pa.Array) -> pa.Array:
    """Keys as text that need not be any: RE2 matches no letter with what is not UTF-8."""
    return keys.view(pa.string())


def _any(of: pa.Array, masks: Sequence[pa.Array]) -> pa.Array:
    union = pa.repeat(False, len(of))
    for mask in masks:
        union = pc.or_(union, mask)
    return union


def _matching_end(paths: pa.Array, pattern: str) -> pa.Array:
    plain, quoted = at_the_end(pattern)
    try:
        return pc.match_substring_regex(paths, plain)
    except pa.ArrowInvalid:
        return pc.match_substring_regex(paths, quoted)
