"""The file by which a repository of lakeFS tells of its changes. Pure."""

from __future__ import annotations

from typing import Any

ACTION_FILE = "_lakefs_actions/lakemirror.yaml"
SECRET_VARIABLE = "LAKEFSACTION_LAKEMIRROR_SECRET"
"""Where lakeFS finds the secret: of its environment hooks get what begins like this (its `actions.env.prefix`)."""
FILLED_IN = f"{{{{ ENV.{SECRET_VARIABLE} }}}}"
"""What stands in the file in place of the secret, which so is never committed, mirrored or exported."""
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
