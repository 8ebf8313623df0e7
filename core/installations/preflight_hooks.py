"""Does a source's every branch have the file by which lakeFS tells of its changes, or asks before a merge? Pure.

lakeFS reads it from the branch that an event is about, and of a merge from the branch that is merged: one without the
file is silent, and nobody sees that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.errors import LakeMirrorError
from core.installations.preflight import Check, CheckOutcome, not_known
from core.installations.webhook_action import ACTION_FILE, HOLD_FILE
from core.text.phrases import count

NAMED = 5


@dataclass(frozen=True, slots=True)
class Hooked:
    """Branches whose heads have the file, and those that lack it; `unread`: so many others were not looked at."""

    having: Sequence[str] = ()
    lacking: Sequence[str] = ()
    unread: int = 0

    @property
    def looked(self) -> int:
        """How many branches were looked at."""
        return len(self.having) + len(self.lacking)


def check_webhook(name: str, answer: Hooked | LakeMirrorError) -> Check:
    """Are changes of the mirrored branches told of? A source without any such file is in order: it is asked."""
    check_id = "source-webhook"
    if isinstance(answer, LakeMirrorError):
        return not_known(check_id, f"whether the branches of '{name}' have {ACTION_FILE}", answer)
    if not answer.having:
        message = f"No branch of '{name}' has {ACTION_FILE}: LakeMirror asks for changes at intervals"
        return Check(check_id, CheckOutcome.OK, f"{message}{_rest(answer)}")
    if not answer.lacking:
        return Check(check_id, CheckOutcome.OK, _all_have(answer, "tell of their changes at once"))
    message = f"{_lack(answer)} {ACTION_FILE}, so that their changes are seen only when LakeMirror asks"
    return Check(check_id, CheckOutcome.WARNING, f"{message}{_rest(answer)}", _fix(answer, ACTION_FILE))


def check_hold_file(name: str, answer: Hooked | LakeMirrorError) -> Check:
    """Of a mirror that is to hold merges: do the branches ask before they are merged?"""
    check_id = "source-hold-file"
    if isinstance(answer, LakeMirrorError):
        return not_known(check_id, f"whether the branches of '{name}' have {HOLD_FILE}", answer)
    if not answer.lacking:
        return Check(check_id, CheckOutcome.OK, _all_have(answer, "ask before they are merged"))
    message = f"{_lack(answer)} {HOLD_FILE}: when they are merged nobody is asked, and nothing is held"
    return Check(check_id, CheckOutcome.WARNING, f"{message}{_rest(answer)}", _fix(answer, HOLD_FILE))


def _all_have(answer: Hooked, what: str) -> str:
    return f"{count(len(answer.having), 'branch', 'branches')} {what}{_rest(answer)}"


def _lack(answer: Hooked) -> str:
    names = ", ".join(answer.lacking[:NAMED]) + (" …" if len(answer.lacking) > NAMED else "")
    verb = "lacks" if len(answer.lacking) == 1 else "lack"
    return f"{len(answer.lacking)} of {count(answer.looked, 'branch', 'branches')} ({names}) {verb}"


def _rest(answer: Hooked) -> str:
    return f"; {count(answer.unread, 'other was', 'others were')} not looked at" if answer.unread else ""


def _fix(answer: Hooked, file: str) -> str:
    if answer.having:
        return f"Commit {file} to them, or merge {answer.having[0]}, which has it, into them"
    return f"Commit {file} to the default branch first, so that each branch that is cut from it has it"
