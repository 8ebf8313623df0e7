"""A certificate's content, found again from the bytes alone. The reader of lakeFS's files is a program of its own."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from lakemirror.errors import No, WrongUsage

NEEDED = (
    "--check needs the reader of lakeFS's files, which is not installed with this command: "
    "use ./scripts/lakemirror in a checkout of LakeMirror, once scripts/run has run there"
)


def require_same(certificate: dict[str, Any], folder: str) -> None:
    """Raises No, with the file, unless a copy of `_lakefs/` gives the certificate's content digest."""
    recomputed = _certify(folder, certificate["commit"], certificate["metarange"])
    if recomputed["content_digest"] != certificate["content_digest"]:
        counted = ", ".join(f"{recomputed[name]:,} {name}" for name in ("ranges", "entries", "bytes"))
        raise No(f"the certificate differs: the files in {folder} name {counted}")


def _certify(folder: str, commit: str, metarange: str) -> dict[str, Any]:
    reader = _reader()
    if reader is None:
        raise WrongUsage(NEEDED)
    command = [sys.executable, "-P", "-m", "graveler", "certify", folder, commit, metarange]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(reader)}, capture_output=True, text=True)
    if done.returncode:
        lines = (done.stdout or done.stderr).strip().splitlines()
        raise No(f"the commit can't be recomputed from {folder}: {lines[-1] if lines else 'no reason was given'}")
    recomputed: dict[str, Any] = json.loads(done.stdout)
    return recomputed


def _reader() -> Path | None:
    """The folder that holds the reader's package; None where it, or what it needs, is not installed."""
    try:
        module = importlib.import_module("graveler.certify")
    except ImportError:
        return None
    return Path(module.__file__).parent.parent if module.__file__ else None
