"""What a commit holds, as facts with a digest. Without what reading them takes: pages tell of it too."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


def digest_of(facts: Mapping[str, Any]) -> str:
    """SHA-256 of facts as JSON with sorted keys and no spaces."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Content:
    """A commit's metarange, and how many ranges, entries and bytes of objects that names."""

    commit: str
    metarange: str
    ranges: int
    entries: int
    bytes: int

    def facts(self) -> dict[str, Any]:
        """The facts by name."""
        return {name: getattr(self, name) for name in self.__slots__}

    def digest(self) -> str:
        """What these facts give anywhere."""
        return digest_of(self.facts())
