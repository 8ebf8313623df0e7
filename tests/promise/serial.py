"""Threads that aren't: each call is over when it was sent."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from tests.mirrors.harness import OneByOne

PACKAGES = ("mirrors.", "mirroring.", "installations.", "jobs.", "db.", "spark_jobs.", "core.")


class Serial(OneByOne):
    """Takes what the real one takes."""

    def __init__(self, max_workers: int | None = None, **_: Any) -> None:
        super().__init__(max_workers or 1)


def users_of_threads() -> Iterator[ModuleType]:
    """Modules of ours that make threads to call with."""
    for name, module in sorted(sys.modules.items()):
        if name.startswith(PACKAGES) and hasattr(module, "ThreadPoolExecutor"):
            yield module
