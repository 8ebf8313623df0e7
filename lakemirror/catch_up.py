"""Whether a mirror has what its source had when somebody asked."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from lakemirror.api import Api
from lakemirror.errors import No
from lakemirror.output.formatting import moment
from lakemirror.wait import Look

ASIDE = ("Gone at source", "Not mirrored")
"""Branches in these states follow nothing."""
STUCK = ("Stopped", "Frozen")
STUCK_WHILE_BEHIND = ("Failed",)


class CatchingUp:
    """Looks at a mirror. What the source has is what the first look at it shows that began after `asked_at`.

    A branch has that when all that it still waits for was seen later: commits may be passed on the way. Where nobody
    knows how late it is, as of one whose head is not proven whole, nobody knows that it has it.
    """

    def __init__(self, api: Api, path: str, asked_at: str) -> None:
        self._api, self._path = api, path
        self._asked_at = moment(asked_at)
        self._looked_at: datetime | None = None

    def __call__(self) -> Look:
        """How many branches have it. Raises No where waiting doesn't help."""
        mirror = self._api.get(self._path)
        looked_at = moment(mirror["source_looked_at"])
        if self._looked_at is None and looked_at and self._asked_at and looked_at >= self._asked_at:
            self._looked_at = looked_at
        branches = [branch for branch in mirror["branches"] if branch["status"] not in ASIDE and branch["source_head"]]
        having = sum(self._has(branch) for branch in branches)
        done = bool(branches) and having == len(branches)
        self._give_up(mirror, done)
        text = mirror["reason"] if self._looked_at else f"Checking the source. {mirror['reason']}"
        return Look(done, having, max(len(branches), 1), text, mirror)

    def _has(self, branch: dict[str, Any]) -> bool:
        pending_since = moment(branch["oldest_pending_seen_at"])
        if self._looked_at is None or not branch["mirror_head"]:
            return False
        if branch["pending_commits"]:
            return pending_since is not None and pending_since > self._looked_at
        return branch["lag_seconds"] is not None

    def _give_up(self, mirror: dict[str, Any], done: bool) -> None:
        status = mirror["status"]
        stuck = status in STUCK_WHILE_BEHIND or mirror["paused"]
        if status in STUCK or (self._looked_at and not done and stuck):
            raise No(f"{mirror['id']}: waiting won't help. {mirror['reason']}")
