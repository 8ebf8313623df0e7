"""A SQLite database with all tables, made once and copied by every process that tests with SQLite.

The migrations take five seconds of processor, which each group of tests, and each run of a single file, would pay.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from pathlib import Path

import django
import django_q
from django.conf import settings

ROOT = Path(__file__).parent.parent
KEPT = ROOT / ".pytest_cache" / "tables"
SHAPES = ("*/migrations/*.py", "db/**/*.py", "audit/*.py", "lakemirror_site/settings*.py")
"""Sources that decide how the tables look."""


def applies() -> bool:
    """Whether this run tests with SQLite."""
    return "sqlite3" in settings.DATABASES["default"]["ENGINE"]


class ReadyTables:
    """The database of this process's tests. Who finds none to copy makes it, and is alone until it is kept; others
    wait for it."""

    def __init__(self) -> None:
        self._kept = KEPT / f"{_digest()}.sqlite3"
        self._ours = Path(settings.DATABASES["default"]["TEST"]["NAME"])
        KEPT.mkdir(parents=True, exist_ok=True)
        self._lock = (KEPT / "lock").open("w")

    def fetch(self) -> None:
        """Put a copy in place, if there is one."""
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        if self._kept.exists():
            shutil.copyfile(self._kept, self._ours)
            self._lock.close()

    def keep(self) -> None:
        """Ours is whole: those who come after copy it. Those of other versions go."""
        if self._lock.closed:
            return
        for old in KEPT.glob("*.sqlite3"):
            old.unlink()
        draft = self._kept.with_suffix(f".{os.getpid()}")
        shutil.copyfile(self._ours, draft)
        draft.rename(self._kept)
        self._lock.close()


def _digest() -> str:
    """Of all that decides how the tables look."""
    found = hashlib.sha256(f"{django.VERSION} {django_q.VERSION}".encode())
    for path in sorted(path for shape in SHAPES for path in ROOT.glob(shape)):
        found.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return found.hexdigest()[:32]
