"""What a browser calls itself, in a few words."""

from __future__ import annotations

import re

_BROWSERS = (
    (r"\bEdg(?:e|A|iOS)?/", "Edge"),
    (r"\bOPR/", "Opera"),
    (r"\b(?:Firefox|FxiOS)/", "Firefox"),
    (r"\b(?:Chrome|CriOS|Chromium)/", "Chrome"),
    (r"\bSafari/", "Safari"),
)
_SYSTEMS = (
    (r"Android", "Android"),
    (r"iPhone|iPad", "iOS"),
    (r"Windows", "Windows"),
    (r"Mac OS X|Macintosh", "macOS"),
    (r"CrOS", "ChromeOS"),
    (r"Linux", "Linux"),
)


def in_words(user_agent: str) -> str:
    """`Firefox on Linux`; what is not known is told as it stands."""
    browser, system = (_first(kinds, user_agent) for kinds in (_BROWSERS, _SYSTEMS))
    if browser and system:
        return f"{browser} on {system}"
    return browser or user_agent[:40] or "unknown"


def _first(kinds: tuple[tuple[str, str], ...], text: str) -> str:
    return next((name for pattern, name in kinds if re.search(pattern, text)), "")
