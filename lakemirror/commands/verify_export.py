"""The command that compares an export's destination with its commit."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from lakemirror.commands.context import Talk
from lakemirror.commands.exports import of_branch
from lakemirror.errors import No
from lakemirror.output import export_tables
from lakemirror.output.formatting import short
from lakemirror.wait import Look, may_wait, wait_until_done

FIRST_LINES = 50


@click.command()
@may_wait
@of_branch
def verify(talk: Talk, branch: str, wait: bool, timeout: float | None) -> None:
    """Compare the destination with the last complete export; nothing is changed there. With --wait it ends with 1 where
    something is missing (+), different (*) or in no commit (-)."""
    verification = talk.api.post(f"{branch}/export-verify")
    if wait or timeout is not None:
        verification = _ended(talk, branch, int(verification["id"]), timeout)
    has_drifted = verification["outcome"] == "drifted"
    drift = talk.api.get(f"{branch}/export-drift", amount=FIRST_LINES)["results"] if has_drifted else []
    talk.tell(verification, partial(export_tables.verification, drift=drift))
    if has_drifted:
        click.get_current_context().exit(No.exit_code)


def _ended(talk: Talk, branch: str, number: int, timeout: float | None) -> dict[str, Any]:
    """Wait for the verification of this number. Raises No where it could not be carried to its end."""
    asked = f"{branch}/export-verification"
    verification = wait_until_done(lambda: _look(talk.api.get(asked)), "Files compared", timeout)
    if verification["outcome"] == "outdated" or int(verification["id"]) != number:
        raise No(f"the verification is outdated: {verification['error'] or 'another one began'}")
    if verification["outcome"] == "failed":
        raise No(f"could not verify: {verification['error']}")
    return verification


def _look(verification: dict[str, Any]) -> Look:
    seen = verification["equal"] + verification["missing"] + verification["different"]
    outcome = verification["outcome"] or "comparing"
    text = f"{short(verification['ref'])}: {outcome}, {export_tables.drifted(verification):,} drifted"
    return Look(verification["outcome"] is not None, seen, max(verification["files"] or 0, 1), text, verification)
