"""What becomes of the workers of a life."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Worker:
    """What becomes of a worker in this step. `left`: so many calls and statements until it ends, 0 for never; `fatal`:
    how often a forced call is its last one."""

    left: int = 0
    weather: float = 0.0
    meddling: float = 0.0
    fatal: float = 0.0
    at_work: str = ""
    dead: bool = False
