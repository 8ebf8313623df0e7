"""The commands that compare an export's destination with its commit, and that repair what drifted."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from lakemirror.commands.context import Talk
from lakemirror.commands.exports import of_branch, tell_when_done
from lakemirror.errors import No
from lakemirror.output import export_tables
from lakemirror.output.formatting import short
from lakemirror.wait import Look, may_wait, wait_until_done

FIRST_LINES = 50


@click.command()
@may_wait
@of_branch
def verify(talk: Talk, branch: str, wait: bool, timeout: float | None) -> None:
    """Compare the destination with the last complete export; nothing is changed there. With --wait it exits with 1 if
    something is missing (+), different (*) or in no commit (-)."""
    verification = talk.api.post(f"{branch}/export-verify")
    if wait or timeout is not None:
        verification = _ended(talk, branch, int(verification["id"]), timeout)
    has_drifted = verification["outcome"] == "drifted"
    drift = talk.api.get(f"{branch}/export-drift", amount=FIRST_LINES)["results"] if has_drifted else []
    talk.tell(verification, partial(export_tables.verification, drift=drift))
    if has_drifted:
        click.get_current_context().exit(No.exit_code)


@click.command("repair-drift")
@click.option("--remove", is_flag=True, help="Also remove foreign files that this export copied for an earlier commit.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@may_wait
@of_branch
def repair_drift(talk: Talk, branch: str, remove: bool, yes: bool, wait: bool, timeout: float | None) -> None:
    """Copy again what the last verification found missing or different; what lies there instead is replaced. With
    --wait it exits with 1 if that fails. A verification follows."""
    found = talk.api.get(f"{branch}/export-verification")
    told = f"{found['missing']:,} missing, {found['different']:,} different, {found['foreign']:,} foreign"
    foreign = "those written by this export are removed" if remove else "they stay"
    question = f"At {found['path']}: {told} ({foreign}). Copy them again and replace what is different?"
    if not yes and not click.confirm(question, err=True):
        raise No("nothing was repaired")
    run = talk.api.post(f"{branch}/export-repair-drift", {"removeForeign": remove})
    if wait or timeout is not None:
        tell_when_done(talk, branch, int(run["id"]), timeout)
    else:
        talk.tell(run, lambda run: f"Export-ID:{run['id']}")


def _ended(talk: Talk, branch: str, number: int, timeout: float | None) -> dict[str, Any]:
    """Wait for the verification of this number. Raises No where it could not be carried to its end."""
    asked = f"{branch}/export-verification"
    verification = wait_until_done(lambda: _look(talk.api.get(asked)), "Files compared", timeout)
    if verification["outcome"] == "outdated" or int(verification["id"]) != number:
        raise No(f"the verification is outdated: {verification['error'] or 'another one started'}")
    if verification["outcome"] == "failed":
        raise No(f"could not verify: {verification['error']}")
    return verification


def _look(verification: dict[str, Any]) -> Look:
    seen = verification["equal"] + verification["missing"] + verification["different"]
    outcome = verification["outcome"] or "comparing"
    text = f"{short(verification['ref'])}: {outcome}, {export_tables.drifted(verification):,} drifted"
    return Look(verification["outcome"] is not None, seen, max(verification["files"] or 0, 1), text, verification)
