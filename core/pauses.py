"""A pause of a mirror or of an export: why, and until when somebody meant it. It never ends by itself. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from core.errors import Invalid
from core.mirroring.rpo import in_words
from core.text.json_fields import moment_of, text_of
from core.text.phrases import Phrase, name, say, sentence, sentences

LONGEST_REASON = 200
LONGEST_NAME = 150
LONGEST = timedelta(days=366)
ENDED: Mapping[str, Any] = {
    "paused": False,
    "pause_reason": "",
    "paused_until": None,
    "paused_at": None,
    "paused_by": "",
}
"""The columns of something that is not paused."""
STATED = ("pause_reason", "paused_until")
"""What somebody says of a pause, by its columns."""


@dataclass(frozen=True, slots=True)
class Pause:
    """`until`: when it was meant to end, None if nobody said; `at`, `by`: since when and by whom, if that is known."""

    reason: str = ""
    until: datetime | None = None
    at: datetime | None = None
    by: str = ""

    def is_overdue(self, now: datetime) -> bool:
        """Whether it has lasted for longer than was said."""
        return self.until is not None and now >= self.until

    def told(self, now: datetime) -> Phrase:
        """The beginning of a sentence: "paused", or by whom, why, and when that was meant to end."""
        if not self.reason and self.until is None:
            return say("paused")
        by = f" by {self.by}" if self.by else ""
        why = say(" (", self.reason.rstrip("."), ")") if self.reason else say()
        return say(f"paused{by}", why, self._end(now))

    def overdue(self, subject: str, now: datetime) -> Phrase:
        """The sentences of an alert: it has lasted for longer than was said. `subject`: the name of what is paused."""
        return sentences(
            sentence(name(subject), " was ", self.told(now), ", and still is"),
            say("Resume it, or give the pause another end."),
        )

    def _end(self, now: datetime) -> Phrase:
        if self.until is None:
            return say()
        passed = f", {in_words((now - self.until).total_seconds())} ago" if self.is_overdue(now) else ""
        return say(f", meant to end at {self.until.astimezone(UTC):%Y-%m-%d %H:%M} UTC{passed}")


def columns_of(pause: Pause | None, stated: Mapping[str, Any], *, by: str, now: datetime) -> dict[str, Any]:
    """The columns of a pause that begins, or goes on with another reason or end. `pause`: the one that goes on; what is
    not `stated` of it stays. Raises Invalid for what can't be said of one."""
    check(stated, now)
    if pause is None:
        return {**ENDED, **stated, "paused": True, "paused_at": now, "paused_by": by}
    return {"paused": True, **stated}


def of_pause(pause: Pause | None) -> dict[str, Any]:
    """All columns of a pause, or of none."""
    if pause is None:
        return dict(ENDED)
    said = {"pause_reason": pause.reason, "paused_until": pause.until}
    return {"paused": True, "paused_at": pause.at, "paused_by": pause.by, **said}


def to_json(pause: Pause) -> dict[str, str]:
    """As a file holds it, without what nobody said; times in UTC, by ISO 8601."""
    texts = {"reason": pause.reason, "by": pause.by}
    times = {"until": pause.until, "at": pause.at}
    return {key: text for key, text in texts.items() if text} | {
        key: at.astimezone(UTC).isoformat() for key, at in times.items() if at
    }


def of_json(body: Mapping[str, Any]) -> Pause:
    """The pause that a file holds. Raises Invalid for what can't be one."""
    reason = text_of({"reason": "", **body}, "reason", LONGEST_REASON)
    by = text_of({"by": "", **body}, "by", LONGEST_NAME)
    until, at = (moment_of(body, key) if key in body else None for key in ("until", "at"))
    return Pause(reason, until, at, by)


def recorded(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Columns for the audit trail, which knows by itself who did it, and when."""
    kept = {name: value for name, value in columns.items() if name not in ("paused_at", "paused_by")}
    until = kept.get("paused_until")
    return kept | ({"paused_until": f"{until.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"} if until else {})


def check(stated: Mapping[str, Any], now: datetime) -> None:
    """Raise Invalid for the first thing that can't be so."""
    reason, until = stated.get("pause_reason", ""), stated.get("paused_until")
    if len(reason) > LONGEST_REASON or re.search(r"[\x00-\x1f\x7f]", reason):
        raise Invalid(f"a reason has {LONGEST_REASON} characters at most, all of them on one line", field="reason")
    if until is not None and until <= now:
        raise Invalid("a pause ends in the future", field="until", hint="Give a later time, or none")
    if until is not None and until - now > LONGEST:
        hint = "Give an earlier time, or none"
        raise Invalid(f"the end of a pause is {LONGEST.days} days away at most", field="until", hint=hint)
