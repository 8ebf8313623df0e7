"""What to write in place of an expression that RE2 does not take, and where a parenthesis is odd. Pure."""

from __future__ import annotations

_LOOKING = "RE2 has no lookahead or lookbehind: write out the text, or use one expression for each case"
_AGAIN = "RE2 has no backreferences: write the text itself, or [^/]+ for any text"
_BY_PART = (
    ("(?P=", _AGAIN),
    ("(?=", _LOOKING),
    ("(?!", _LOOKING),
    ("(?<=", _LOOKING),
    ("(?<!", _LOOKING),
    ("(?P", "Remove the name: (...) is a group too"),
    ("(?>", "Write (?:...): RE2 never backtracks, so it has no atomic groups"),
    ("(?#", "Remove the comment"),
    ("(?", "Write (?:...) for a group, (?i) to ignore case"),
)
_BY_WORDS = {
    "missing )": r"Close the group with ), or write \( for the character itself",
    "unexpected )": r"Remove the ), or write \) for the character itself",
    "missing ]": r"Close the class with ], or write \[ for the character itself",
    "no argument for repetition operator": r"Write .* for anything (* is a shell's), or \* for the character itself",
    "bad repetition operator": "One of * + ? {n} is enough: RE2 never backtracks, so it has no possessive quantifiers",
    "invalid repetition size": "Write {least,most} with least first, and no more than 1000, nested ones multiplied",
    "invalid character class range": r"Write the smaller character first, as in [a-z], and \- for the character itself",
    "invalid escape sequence": r"Remove the backslash, or write \\ for the character itself",
    "trailing \\": r"Write \\ for the character itself",
    "pattern too large": "Split it into several expressions, or use smaller repetitions",
    "it is not text": "Write UTF-8",
}
PARENTHESES = ("missing )", "unexpected )")
ELSE = "The syntax is at https://github.com/google/re2/wiki/Syntax"


def instead(words: str, part: str) -> str:
    """What to do about it. `words` and `part` are RE2's own: what is wrong, and the piece that it is about."""
    if part[:1] == "\\" and part[1:2].isdigit():
        return _AGAIN
    if words == "invalid perl operator":
        return next((hint for begins, hint in _BY_PART if part.startswith(begins)), ELSE)
    return next((hint for begins, hint in _BY_WORDS.items() if words.startswith(begins)), ELSE)


def odd_parenthesis(pattern: str) -> int:
    """Where the first ) stands that closes nothing, else the last ( that is never closed; -1: neither. What is quoted
    or in a class is no parenthesis."""
    opened: list[int] = []
    at, in_class = 0, -1
    while at < len(pattern):
        letter = pattern[at]
        if letter == "\\":
            at = _after_escape(pattern, at)
            continue
        if in_class >= 0:
            in_class = -1 if letter == "]" and at > in_class + 1 else in_class
        elif letter == "[":
            in_class = at + (pattern[at + 1 : at + 2] == "^")
        elif letter == "(":
            opened.append(at)
        elif letter == ")":
            if not opened:
                return at
            opened.pop()
        at += 1
    return opened[-1] if opened else -1


def _after_escape(pattern: str, at: int) -> int:
    if pattern[at + 1 : at + 2] != "Q":
        return at + 2
    end = pattern.find(r"\E", at)
    return len(pattern) if end < 0 else end + 2
