"""Preparing an environment and running LakeMirror's processes.

Uses Python's own library only: it runs before .venv exists.
"""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
VAR = Path(os.environ.get("LAKEMIRROR_VAR") or ROOT / "var").resolve()
