"""The expressions of an export, in the language of RE2: what the export of old took, and bounded in time by nature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import re2

from core.errors import Invalid

MARKER = "_lakefs_success"


@dataclass(frozen=True, slots=True)
class Patterns:
    """Which directories get a marker, and which keys come last in theirs."""

    _directories: Sequence[Any]
    _keys: Sequence[Any]

    def matches_directory(self, path: str) -> bool:
        """Whether some expression is found in the directory with its slash; the root is ""."""
        shown = f"{path}/" if path else ""
        return any(one.search(shown) for one in self._directories)

    def is_last_key(self, key: str) -> bool:
        """Whether some match ends where the key does; what is named like a marker is one always."""
        return key.rpartition("/")[2] == MARKER or any(one.search(key) for one in self._keys)


def compile_patterns(patterns: Sequence[str], *, field: str = "") -> Patterns:
    """Raises Invalid for what is no expression, saying which one it is, and where it goes wrong."""
    compiled = [_compile(pattern, f"{field}[{at}]" if field else f"[{at}]") for at, pattern in enumerate(patterns)]
    ending = [_compile(f"(?:{pattern})\\z", field) for pattern in patterns]
    return Patterns(compiled, ending)


def _compile(pattern: str, field: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 8 << 20
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        told = error.args[0] if error.args else ""
        told = told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)
        hint = "It is in the language of RE2: no look-around, no back references"
        raise Invalid(f"'{pattern[:80]}' is no expression: {told}", field=field, hint=hint) from error
