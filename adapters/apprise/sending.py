"""Sends a message by Apprise, in a process of its own that may reach the internet and nothing of ours.

The process has no environment but what Python needs, so that neither proxies nor secrets are in it, an empty folder to
stand in, and a limit of time, after which it is killed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import Denied, Invalid, Unreachable
from core.notifications.addresses import PRIVATE_HINT, scheme_of, secret_parts
from core.redaction import without_known

SECONDS = 20.0
"""All of it may take so long, with the start of the process."""
_ROOT = Path(__file__).resolve().parent.parent.parent
_KEPT = ("LANG", "LC_ALL", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "TZ")
_SAID = 400


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether the service took the message, and what Apprise said of it, without what of the URL is secret."""

    taken: bool
    text: str


def send(url: str, title: str, body: str, *, bad: bool, private: bool) -> Answer:
    """Send it. Raises Denied where the URL leads to what must not be reached, and Unreachable when there was no answer
    in time."""
    said = _run(url, title=title, body=body, bad=bad, private=private, send=True)
    if said["ok"]:
        return Answer(True, f"{said['service']} took it")
    return Answer(False, _told(said, url) or "the message was not accepted, and Apprise does not say why")


def check(url: str, *, private: bool) -> None:
    """Raises Invalid if Apprise can make nothing of the URL."""
    said = _run(url, title="", body="", bad=False, private=private, send=False)
    if not said["ok"]:
        problem = f"Apprise does not accept this URL: {_told(said, url)}".removesuffix(": ")
        hint = f"See how URLs of {scheme_of(url)}:// are written: https://appriseit.com/services/"
        raise Invalid(problem, field="url", hint=hint)


def _run(url: str, **wanted: Any) -> dict[str, Any]:
    command = [sys.executable, "-P", "-m", "adapters.apprise.child"]
    given = json.dumps({"url": url, **wanted})
    with tempfile.TemporaryDirectory(prefix="lakemirror-") as empty:
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        environment |= {"HOME": empty, "PYTHONPATH": str(_ROOT), "PYTHONDONTWRITEBYTECODE": "1", "PATH": os.defpath}
        try:
            ended = subprocess.run(
                command, input=given, capture_output=True, text=True, timeout=SECONDS, cwd=empty, env=environment
            )
        except subprocess.TimeoutExpired:
            raise Unreachable(f"the service did not answer within {SECONDS:.0f} s") from None
    if ended.returncode:
        said = without_known((ended.stderr.strip().splitlines() or ["no reason"])[-1], secret_parts(url))
        raise Unreachable(f"Apprise ended with {ended.returncode}: {said[:_SAID]}")
    answer: dict[str, Any] = json.loads(ended.stdout)
    if answer["refused"] and not answer["ok"]:
        why = answer["refused"][0]
        raise Denied(f"refused: {why}", hint=PRIVATE_HINT if "private network" in why else "Choose another service")
    return answer


def _told(said: dict[str, Any], url: str) -> str:
    """What Apprise said, on one line, without secrets."""
    text = " ".join(" ".join(said["said"]).split())
    return without_known(text, [one for one in secret_parts(url) if one != scheme_of(url)])[:_SAID]
