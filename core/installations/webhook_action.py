"""The file by which a repository of lakeFS tells of its changes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.holding import HELD_EVENT, HOOK_ID, REFUSED_EVENTS

ACTION_FILE = "_lakefs_actions/lakemirror.yaml"
SECRET_VARIABLE = "LAKEFSACTION_LAKEMIRROR_SECRET"
"""Where lakeFS finds the secret: of its environment hooks get what begins like this (its `actions.env.prefix`)."""
FILLED_IN = f"{{{{ ENV.{SECRET_VARIABLE} }}}}"
"""What stands in the file in place of the secret, which so is never committed, mirrored or exported."""
HOLD_FILE = "_lakefs_actions/lakemirror-hold.yaml"
EVENTS = (
    "post-commit",
    "post-merge",
    "post-create-branch",
    "post-delete-branch",
    "post-create-tag",
    "post-delete-tag",
)


def lakefs_action(url: str, secret: str) -> dict[str, Any]:
    """What stands in ACTION_FILE, as YAML: every branch's events are sent to `url` with `secret`, for lakeFS 1.x.

    lakeFS reads it from the commit that an event is about, so each branch needs the file.
    """
    hook = {
        "id": "lakemirror",
        "type": "webhook",
        "properties": {"url": url, "timeout": "10s", "headers": {"Authorization": f"Bearer {secret}"}},
    }
    return {"name": "tell LakeMirror", "on": dict.fromkeys(EVENTS), "hooks": [hook]}


def hold_action(url: str, secret: str, *, branches: Sequence[str], copies: int, timeout: int) -> dict[str, Any]:
    """What stands in HOLD_FILE, as YAML: a merge into these branches asks `url`, and so does what is refused there.

    lakeFS reads it from the branch that is merged, so each of those needs the file; the address says how many regions
    are wanted at least, so that a lost policy lets nothing pass.
    """
    hook = {
        "id": HOOK_ID,
        "type": "webhook",
        "properties": {
            "url": url,
            "timeout": f"{timeout}s",
            "query_params": {"copies": str(copies), "timeout": str(timeout)},
            "headers": {"Authorization": f"Bearer {secret}"},
        },
    }
    events = {event: {"branches": list(branches)} for event in (HELD_EVENT, *REFUSED_EVENTS)}
    return {"name": "hold merges until LakeMirror has them", "on": events, "hooks": [hook]}
