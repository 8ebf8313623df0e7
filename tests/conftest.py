"""Fixtures that every test may ask for by name."""

from __future__ import annotations

from tests.cast import outsider, owner, teammate

__all__ = ["outsider", "owner", "teammate"]
