"""The files that a real lakeFS server wrote, as far as they may lie in this project."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent.parent / "fixtures" / "lakefs-run"


def files_of(repository: str) -> list[Path]:
    """Every metadata file of a recorded repository that is at hand."""
    return sorted((RECORDED / repository / "_lakefs").iterdir())


def commits_of(repository: str) -> list[dict[str, Any]]:
    """The commits as the API gave them."""
    commits: list[dict[str, Any]] = json.loads((RECORDED / repository / "repository.json").read_text())["commits"]
    return commits


def bytes_of(repository: str, file_id: str) -> bytes:
    """One recorded metadata file."""
    return (RECORDED / repository / "_lakefs" / file_id).read_bytes()
