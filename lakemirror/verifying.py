"""The command that compares an export's destination with its commit."""

from __future__ import annotations

from typing import Any

import click

from lakemirror import export_tables
from lakemirror.errors import No
from lakemirror.exporting import OneExport, of_branch
from lakemirror.talking import Talk
from lakemirror.waiting import Look, may_wait, wait_until_done
from lakemirror.words import short

FIRST_LINES = 50


@click.command()
@may_wait
@of_branch
def verify(talk: Talk, export: OneExport, wait: bool, timeout: float | None) -> None:
    """Compare the destination with the last complete export; nothing is changed there. With --wait it ends with 1 where
    something is missing (+), different (*) or in no commit (-)."""
    found = export.post("export-verify")
    if wait or timeout is not None:
        found = _ended(export, int(found["id"]), timeout)
    drift = [] if not _drifted(found) else export.get("export-drift", amount=FIRST_LINES)["results"]
    talk.tell(found, lambda: export_tables.verification(found, drift))
    if _drifted(found):
        click.get_current_context().exit(No.exit_code)


def _ended(export: OneExport, number: int, timeout: float | None) -> dict[str, Any]:
    """Wait for the verification of this number. Raises No where it could not be carried to its end."""
    found: dict[str, Any] = {}

    def look() -> Look:
        found.clear()
        found.update(export.get("export-verification"))
        return _look(found)

    wait_until_done(look, "Files compared", timeout)
    if found["outcome"] == "outdated" or int(found["id"]) != number:
        raise No(f"the verification is outdated: {found['error'] or 'another one began'}")
    if found["outcome"] == "failed":
        raise No(f"could not verify: {found['error']}")
    return found


def _look(found: dict[str, Any]) -> Look:
    seen = found["equal"] + found["missing"] + found["different"]
    told = f"{short(found['ref'])}: {found['outcome'] or 'comparing'}, {_drift_count(found):,} drifted"
    return Look(found["outcome"] is not None, seen, max(found["files"] or 0, 1), told)


def _drifted(found: dict[str, Any]) -> bool:
    return bool(found["outcome"] == "drifted")


def _drift_count(found: dict[str, Any]) -> int:
    return int(found["missing"] + found["different"] + found["foreign"])
