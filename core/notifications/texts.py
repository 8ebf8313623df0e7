"""An alert as people read it: the subject and the text of a mail, of a message to a chat or a pager. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.notifications.kinds import AlertKind, Severity

LONGEST_TITLE = 200
TEST = "This is a test of the channel. Nothing is wrong."
_NOTES = {"opened": "", "reminded": "Still open: ", "closed": "Over: "}


@dataclass(frozen=True, slots=True)
class Text:
    """One line, and all of it. `severity`: of an alert that is open; "" for what is good news or none."""

    title: str
    body: str
    severity: str = ""


def text_of(event: str, alert: Mapping[str, Any] | None, *, organization: str, uid: str) -> Text:
    """What a message says. `alert`: as the API tells it, None in a test; `uid`: of the message, one for all tries."""
    if alert is None:
        return Text(f"[{organization}] LakeMirror: test", f"{TEST}\n\nMessage {uid}")
    kind = alert["kind"]
    word = AlertKind(kind).word if kind in {*AlertKind} else kind
    severity = alert["severity"].capitalize() if event != "closed" else ""
    title = f"[{organization}] {_NOTES.get(event, '')}{alert['name']}: {word}"
    lines = [
        f"{word} · {severity}" if severity else f"{word} · over",
        alert["reason"] if event != "closed" else f"Was: {alert['reason']}",
    ]
    lines += [f"Now: {alert['now']}"] if event == "closed" and alert["now"] else []
    lines += [f"What to do: {alert['remedy']}"] if event != "closed" and alert["remedy"] else []
    lines += [f"{alert['name']}{' · ' + alert['region'] if alert['region'] else ''} · since {alert['since']}"]
    lines += [alert["url"]] if alert["url"].startswith("http") else []
    body = "\n".join(lines) + f"\n\nAlert {alert['id']} · message {uid}"
    return Text(" ".join(title.split())[:LONGEST_TITLE], body, alert["severity"] if event != "closed" else "")


def is_bad(severity: str) -> bool:
    """Whether a text is of an error or worse."""
    return bool(severity) and Severity(severity).level >= Severity.ERROR.level
