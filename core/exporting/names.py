"""Which export of a branch: a branch may be exported to several places, each by an export with a name of its own.

`main` is the export of main that has no name, `main:partner` the one called partner. No branch of lakeFS has a colon
in its name (letters, digits, `_` and `-` are what it takes), so one text says which, in addresses and commands alike.
"""

from __future__ import annotations

import re

from core.errors import Invalid

SEPARATOR = ":"
LONGEST = 63
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_.-]{{0,{LONGEST - 1}}}")


def joined(branch: str, name: str) -> str:
    """`branch`, or `branch:name`."""
    return f"{branch}{SEPARATOR}{name}" if name else branch


def parted(text: str) -> tuple[str, str]:
    """Branch and name of what `joined` has made; the name is "" where there is none. Raises Invalid."""
    branch, separator, name = text.partition(SEPARATOR)
    return branch, check_name(name, "branch") if separator else ""


def check_name(name: str, field: str = "name") -> str:
    """The name as it is. Raises Invalid for what can be none; `field` is where it was given."""
    if not _NAME.fullmatch(name):
        raise Invalid(
            f"'{name[:80]}' is not a valid export name",
            field=field,
            hint=f"Use up to {LONGEST} letters, digits and _ . - , beginning with a letter or digit",
        )
    return name
