"""What a page or a button does, as somebody would type it: a call of the API, and the command `lakemirror`."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import join, quote

KEYS = '-u "$ACCESS_KEY_ID:$SECRET_ACCESS_KEY"'


def curl(method: str, url: str, body: str = "") -> str:
    """The call, over several lines. `body` is JSON; sent with POST, which curl then takes for granted."""
    verb = "" if method == "GET" or (method == "POST" and body) else f" -X {method}"
    sent = f" -H 'Content-Type: application/json' \\\n  -d {quote(body)}" if body else ""
    return f"curl {KEYS}{verb}{sent} \\\n  {quote(url)}"


def command(site: str, verb: str, *words: str) -> str:
    """`lakemirror mirror VERB ...` for the LakeMirror at an address; an option whose value is "" is left out."""
    return join(["lakemirror", "mirror", verb, *_given(words), "--url", site])


def _given(words: tuple[str, ...]) -> Iterator[str]:
    """An option that takes a value stands right before it; a flag before another option, or last."""
    for place, word in enumerate(words):
        value = words[place + 1] if place + 1 < len(words) else None
        if word and not (word.startswith("--") and value == ""):
            yield word
