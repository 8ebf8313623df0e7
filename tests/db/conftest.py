"""What the tests of the database share."""

from __future__ import annotations

from tests.fixtures import documented

__all__ = ["documented"]
