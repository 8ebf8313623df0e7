"""Fixtures of the format's tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def all_fixtures() -> Path:
    """The folder of every recorded file, some of which are too big for the project."""
    root = Path(os.environ.get("LAKEMIRROR_FIXTURES") or "missing")
    if not (root / "lakefs-run").is_dir():
        pytest.skip("LAKEMIRROR_FIXTURES does not name the folder of the large fixtures")
    return root
