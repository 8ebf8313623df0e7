"""What every test of mirroring begins with."""

from __future__ import annotations

from tests.fixtures import api, documented, head, lm, olga

__all__ = ["api", "documented", "head", "lm", "olga"]
