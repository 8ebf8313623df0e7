"""Exports as people read them."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from lakemirror.drawing import line, table
from lakemirror.words import UNKNOWN, ago, count, short, size

_WORDS = {
    "": "Never exported",
    "in-progress": "Exporting",
    "exported-successfully": "Exported",
    "export-failed": "Failed",
    "export-repaired": "Repaired",
}
_WORST_FIRST = ("export-failed", "export-repaired", "in-progress", "", "exported-successfully")


def export_list(page: dict[str, Any]) -> RenderableType:
    """All exports, those that failed first."""
    found = sorted(page["results"], key=lambda one: _WORST_FIRST.index(one["status"]["status"]))
    if not found:
        return Text("There is no export.")
    columns = ("Branch", "State", "To", "Commit", "Behind", "Exported")
    return Group(line(f"{count(len(found), 'export')}."), "", table(columns, map(_row, found)))


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    told = one["status"]
    return (
        f"lakefs://{told['repository']}/{told['branch']}",
        state(told),
        one["configuration"]["exportPath"],
        short(told["last_success_ref"]),
        {True: "no", False: "yes"}.get(told["up_to_date"], UNKNOWN),
        ago(told["last_success_at"], told["as_of"]),
    )


def state(told: dict[str, Any]) -> str:
    """Where an export stands in one word or two."""
    return "Paused" if told["paused"] else _WORDS.get(told["status"], told["status"])


def configuration(found: dict[str, Any]) -> RenderableType:
    """How a branch is exported."""
    lines = [
        f"Path         {found['exportPath']}",
        f"Status path  {found['exportStatusPath'] or UNKNOWN}",
        *(f"Expression   {one}" for one in found["lastKeysInPrefixRegexp"]),
        f"Continuous   {'yes' if found['isContinuous'] else 'no'}",
    ]
    if found["objectsPerSecond"]:
        lines.append(f"At most      {found['objectsPerSecond']:,} objects/s")
    if found["bytesPerSecond"]:
        lines.append(f"At most      {size(found['bytesPerSecond'])}/s")
    return Group(*map(line, lines))


def standing(found: dict[str, Any]) -> RenderableType:
    """Where an export stands: its state, its error, its run."""
    lines = [f"lakefs://{found['repository']}/{found['branch']}: {state(found)}"]
    if found["error_message"]:
        lines.append(f"Why          {found['error_message']}")
    if found["look_error"]:
        lines.append(f"The source   {found['look_error']}")
    success = f"{short(found['last_success_ref'])}, {ago(found['last_success_at'], found['as_of'])}"
    lines.append(f"Exported     {success if found['last_success_ref'] else 'not yet'}")
    lines.append(f"Head         {short(found['head'])}, as of {ago(found['head_at'], found['as_of'])}")
    return Group(*map(line, lines + _run_lines(found["run"])))


def _run_lines(run: dict[str, Any] | None) -> list[str]:
    if run is None:
        return []
    done = f"{count(run['copied'], 'file')} copied ({size(run['copied_bytes'])}), {run['skipped']:,} there already"
    rest = f"{run['deleted']:,} removed, {run['failed']:,} failed"
    return [f"Run {run['id']:<9}{short(run['ref'])}: {run['outcome'] or run['phase']}. {done}, {rest}"]


_SIGNS = {"missing": "+", "different": "*", "foreign": "-"}
_ENDS = {
    "equal": "Equal",
    "drifted": "Drifted",
    "outdated": "Outdated",
    "failed": "Could not verify",
    None: "Comparing",
}


def verification(found: dict[str, Any], drift: list[dict[str, Any]]) -> RenderableType:
    """What a verification found; keys that drifted with the signs of `rclone check`, from the commit to the place."""
    at = ago(found["ended_at"] or found["started_at"], found["as_of"])
    lines = [
        f"{_ENDS[found['outcome']]}: {short(found['ref'])} at {found['path']}, {at}",
        f"{count(found['equal'], 'file')} equal ({size(found['equal_bytes'])}), {found['missing']:,} missing, "
        f"{found['different']:,} different, {found['foreign']:,} foreign",
    ]
    if found["error"]:
        lines.append(f"Why          {found['error']}")
    lines += [f"{_SIGNS[one['kind']]} {one['path']}" for one in drift]
    whole = found["missing"] + found["different"] + found["foreign"]
    if drift and whole > len(drift):
        lines.append(f"… and {count(whole - len(drift), 'more', 'more')}")
    return Group(*map(line, lines))
