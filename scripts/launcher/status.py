"""What is ready and what is still being prepared, in a file that the pages read (deployment/preparation.py)."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path


class Status:
    """Stages by name, each waiting, running, ready or failed. Every change replaces the file whole."""

    def __init__(self, path: Path, stages: dict[str, str]) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._stages = {
            name: {"name": name, "title": title, "state": "waiting", "detail": "", "since": time.time()}
            for name, title in stages.items()
        }
        self._write()

    def set(self, name: str, state: str, detail: str = "") -> None:
        """A stage's new state."""
        with self._lock:
            self._stages[name] |= {"state": state, "detail": detail, "since": time.time()}
            self._write()

    def state(self, name: str) -> str:
        return str(self._stages[name]["state"])

    @property
    def unfinished(self) -> list[str]:
        """The titles of the stages that are not ready."""
        return [str(stage["title"]) for stage in self._stages.values() if stage["state"] != "ready"]

    def _write(self) -> None:
        fresh = self._path.with_suffix(".tmp")
        fresh.write_text(json.dumps({"pid": os.getpid(), "stages": list(self._stages.values())}))
        fresh.replace(self._path)

    def remove(self) -> None:
        """Nothing runs any more."""
        self._path.unlink(missing_ok=True)
