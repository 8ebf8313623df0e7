"""Work of a test's own in place of a kind's."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

from jobs import kinds
from jobs.kinds import DutyKind


def every_minute(name: str, work: Any) -> AbstractContextManager[Any]:
    """Duties of this kind do this, a minute apart."""
    kind = DutyKind(name, work, lambda: 60.0, lambda regions: [])
    return mock.patch.dict(kinds._registered, {name: kind})
