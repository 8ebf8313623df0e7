"""What `scripts/run` is still preparing: pages answer before Spark is installed, and say so.

The supervisor writes `var/run/status.json`; where nothing wrote it (another way of running), everything is ready.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from deployment.config import var_dir


@dataclass(frozen=True, slots=True)
class Stage:
    """One thing that is prepared. `state`: waiting, running, ready or failed; `since` in Unix seconds."""

    name: str
    title: str
    state: str
    detail: str = ""
    since: float = 0.0


@dataclass(frozen=True, slots=True)
class Preparation:
    """All stages in their order; truthy while any is not ready."""

    stages: tuple[Stage, ...] = ()

    @property
    def unfinished(self) -> tuple[Stage, ...]:
        return tuple(stage for stage in self.stages if stage.state != "ready")

    @property
    def failed(self) -> bool:
        return any(stage.state == "failed" for stage in self.stages)

    def stage(self, name: str) -> Stage | None:
        """The one of this name, if something of this name is prepared."""
        return next((stage for stage in self.stages if stage.name == name), None)

    def __bool__(self) -> bool:
        return bool(self.unfinished)


def status() -> Preparation:
    """What is being prepared now; a status left by a supervisor that is gone counts as nothing."""
    try:
        # It is replaced whole, so it is never half written.
        content = json.loads(Path(os.environ.get("LAKEMIRROR_STATUS") or var_dir() / "run" / "status.json").read_text())
    except FileNotFoundError:
        return Preparation()
    if not Path(f"/proc/{content.get('pid', 0)}").exists():
        return Preparation()
    return Preparation(tuple(Stage(**stage) for stage in content["stages"]))
