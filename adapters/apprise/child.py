"""Run as a program: reads what to send as JSON from standard input, has Apprise send it, writes what came of it.

In: `url`, `title`, `body`, `bad` (whether it is bad news), `private` (whether private addresses may be called), `send`
(false: only whether the URL can be one). Out: `ok`, `service`, `refused`, `said`.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import apprise
from apprise.logger import logger

from adapters.apprise.guard import Guard

SECONDS = 10.0
"""One call to a service may take so long."""


class _Kept(logging.Handler):
    """Keeps the warnings and errors that Apprise logs."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def main() -> None:
    """One message."""
    wanted = json.load(sys.stdin)
    kept, guard = _Kept(), Guard(private=wanted["private"])
    logger.handlers[:] = [kept]
    logger.propagate = False
    guard.install()
    service, ok = "", False
    try:
        plugin = _plugin(wanted["url"])
        if plugin is not None:
            service = str(plugin.service_name or "")
            ok = not wanted["send"] or _sent(plugin, wanted)
    except Exception as error:  # whatever a plugin raises is this message's outcome
        kept.lines.append(f"{type(error).__name__}: {error}")
    answer = {"ok": ok, "service": service, "refused": guard.refused[:1], "said": kept.lines[-3:]}
    sys.stdout.write(json.dumps(answer))


def _plugin(url: str) -> Any:
    asset = apprise.AppriseAsset(
        storage_mode=apprise.PersistentStoreMode.MEMORY,
        http_redirects=False,
        async_mode=False,
        pgp_autogen=False,
        pem_autogen=False,
        app_id="LakeMirror",
        app_desc="LakeMirror",
    )
    return apprise.Apprise.instantiate(url, asset=asset, suppress_exceptions=False)


def _sent(plugin: Any, wanted: dict[str, Any]) -> bool:
    kind = apprise.NotifyType.FAILURE if wanted["bad"] else apprise.NotifyType.INFO
    text = apprise.NotifyFormat.TEXT
    return bool(plugin.notify(title=wanted["title"], body=wanted["body"], notify_type=kind, body_format=text))


if __name__ == "__main__":
    main()
