"""What LakeMirror is made of that others wrote: which packages, under which licences, with which known weaknesses."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
IMAGE = ("web", "build", "spark", "cli")
"""The stages of requirements/ that the image installs, as deploy/Dockerfile names them."""
DEVELOPMENT = ("sandbox", "test")
"""What the demo and the tests add."""
