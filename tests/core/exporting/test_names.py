"""One text says which export of a branch."""

from __future__ import annotations

import pytest

from core.errors import Invalid
from core.exporting.names import LONGEST, check_name, joined, parted


@pytest.mark.parametrize(
    ("text", "branch", "name"), [("main", "main", ""), ("main:eu-2.b_c", "main", "eu-2.b_c"), ("a/b:x", "a/b", "x")]
)
def test_branch_and_name_are_put_together_and_taken_apart(text: str, branch: str, name: str) -> None:
    assert parted(text) == (branch, name)
    assert joined(branch, name) == text


@pytest.mark.parametrize("name", ["", "a:b", "a/b", "-a", "ä", "a b", "a\n", "a" * (LONGEST + 1)])
def test_what_can_be_no_name_is_refused(name: str) -> None:
    with pytest.raises(Invalid, match="is not a valid export name") as refused:
        parted(f"main:{name}")
    assert refused.value.field == "branch"
    with pytest.raises(Invalid):
        check_name(name)
