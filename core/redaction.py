"""Taking secrets out of a line before it is shown to people who may see jobs, not credentials."""

from __future__ import annotations

import re
from collections.abc import Iterable

HIDDEN = "***"
SHORTEST = 6
"""A shorter secret is not looked for: it would be found in ordinary words."""
_PATTERNS = (
    re.compile(r"(?<=://)[^/\s@]*:[^/\s@]*(?=@)"),
    re.compile(r"(?i)(?<=\bbearer )\S+|(?<=\bbasic )[\w+/=-]{8,}"),
    re.compile(
        r"(?i)\b([\w.-]*(?:password|passwd|secret|token|signature|credential|authorization)[\w.-]*[\"']?\s*[=:]\s*[\"']?)"
        r"(?:bearer |basic )?[^\s\"'&,;}]+"
    ),
)


def without_known(text: str, secrets: Iterable[str]) -> str:
    """The text with these secrets hidden, and nothing else."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= SHORTEST:
            text = text.replace(secret, HIDDEN)
    return text


def without_secrets(text: str, secrets: Iterable[str] = ()) -> str:
    """The text with known secrets, and what looks like one, hidden."""
    text = without_known(text, secrets)
    for pattern in _PATTERNS:
        text = pattern.sub(lambda match: (match.group(1) if match.lastindex else "") + HIDDEN, text)
    return text
