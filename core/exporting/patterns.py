"""What the patterns of an export mean, whoever matches them (RE2 in all cases).

A pattern is searched anywhere in a directory with its slash; the root is empty. It names a key as one of the last ones
of its directory where a match ends with the key, unless it matches the key's directory too: then it means directories
(`.*` does not make every key a last one).
"""

from __future__ import annotations


def at_the_end(pattern: str) -> tuple[str, str]:
    """The pattern for what ends with a match. The second form is for one that leaves a quotation (`\\Q`) open."""
    return rf"(?:{pattern})\z", rf"(?:{pattern}\E)\z"
