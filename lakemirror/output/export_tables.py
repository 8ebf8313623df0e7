"""Exports as people read them."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from lakemirror.output.formatting import UNKNOWN, ago, count, labels_of, short, size
from lakemirror.output.rendering import line, table

_WORDS = {
    "": "Never exported",
    "in-progress": "Exporting",
    "exported-successfully": "Exported",
    "export-failed": "Failed",
    "export-repaired": "Repaired",
}
FAILED = "export-failed"
_TROUBLE = {"damaged": "Drifted", "not_proven": "Not verified"}
"""States of what lies at the destination, whatever became of the last run."""
_WORST_FIRST = ("export-failed", "export-repaired", "in-progress", "", "exported-successfully")


def export_list(page: dict[str, Any]) -> RenderableType:
    """All exports, those that failed first."""
    exports = sorted(page["results"], key=lambda export: _rank(export["status"]))
    if not exports:
        return Text("No exports.")
    columns = ("Branch", "State", "Destination", "Commit", "Behind", "Exported")
    return Group(line(f"{count(len(exports), 'export')}."), "", table(columns, map(_row, exports)))


def _rank(status: dict[str, Any]) -> tuple[bool, int]:
    return not is_in_trouble(status), _WORST_FIRST.index(status["status"])


def _row(export: dict[str, Any]) -> tuple[str, ...]:
    status = export["status"]
    return (
        _which(status),
        state(status),
        export["configuration"]["exportPath"],
        short(status["last_success_ref"]),
        {True: "no", False: "yes"}.get(status["up_to_date"], UNKNOWN),
        ago(status["last_success_at"], status["as_of"]),
    )


def _which(status: dict[str, Any]) -> str:
    """As commands take it; a LakeMirror of before knows no names of exports."""
    name = f":{status['name']}" if status.get("name") else ""
    return f"lakefs://{status['repository']}/{status['branch']}{name}"


def state(status: dict[str, Any]) -> str:
    """Where an export stands in one word or two."""
    if status["paused"]:
        return "Paused"
    return _TROUBLE.get(status.get("state", ""), "") or _WORDS.get(status["status"], status["status"])


def is_in_trouble(status: dict[str, Any]) -> bool:
    """Whether it failed, or what lies at the destination is not, or not known to be, what the commit names."""
    return status["status"] == FAILED or status.get("state", "") in _TROUBLE


def configuration(settings: dict[str, Any]) -> RenderableType:
    """How a branch is exported."""
    lines = [
        f"Path         {settings['exportPath']}",
        f"Status path  {settings['exportStatusPath'] or UNKNOWN}",
        *(f"Expression   {pattern}" for pattern in settings["lastKeysInPrefixRegexp"]),
        f"Continuous   {'yes' if settings['isContinuous'] else 'no'}",
        f"Manifest     {settings['manifest']}",
        f"Actions      {'yes' if settings['includeActions'] else 'no'}",
    ]
    if settings["objectsPerSecond"]:
        lines.append(f"At most      {settings['objectsPerSecond']:,} objects/s")
    if settings["bytesPerSecond"]:
        lines.append(f"At most      {size(settings['bytesPerSecond'])}/s")
    return Group(*map(line, lines))


def standing(status: dict[str, Any]) -> RenderableType:
    """Where an export stands: its state, its error, its run."""
    lines = [f"{_which(status)}: {state(status)}"]
    if status.get("labels"):
        lines.append(f"Labels       {labels_of(status)}")
    if status["paused"] or status.get("state", "") in _TROUBLE:
        lines.append(status["reason"])
    if status["error_message"]:
        lines.append(f"Error        {status['error_message']}")
    if status["look_error"]:
        lines.append(f"Source       {status['look_error']}")
    if status.get("route"):
        lines.append(f"Route        {status['route']}")
    success = f"{short(status['last_success_ref'])}, {ago(status['last_success_at'], status['as_of'])}"
    lines.append(f"Exported     {success if status['last_success_ref'] else 'not yet'}")
    lines.append(f"Head         {short(status['head'])}, as of {ago(status['head_at'], status['as_of'])}")
    if run := status["run"]:
        done = f"{count(run['copied'], 'file')} copied ({size(run['copied_bytes'])}), {run['skipped']:,} there already"
        rest = f"{run['deleted']:,} removed, {run['failed']:,} failed"
        lines.append(f"Run {run['id']:<9}{short(run['ref'])}: {run['outcome'] or run['phase']}. {done}, {rest}")
    return Group(*map(line, lines))


_SIGNS = {"missing": "+", "different": "*", "foreign": "-"}
_ENDS = {
    "equal": "Equal",
    "drifted": "Drifted",
    "outdated": "Outdated",
    "failed": "Could not verify",
    None: "Comparing",
}


def verification(result: dict[str, Any], drift: list[dict[str, Any]]) -> RenderableType:
    """What a verification found; keys that drifted with the signs of `rclone check`, from the commit to the place."""
    at = ago(result["ended_at"] or result["started_at"], result["as_of"])
    lines = [
        f"{_ENDS[result['outcome']]}: {short(result['ref'])} at {result['path']}, {at}",
        f"{count(result['equal'], 'file')} equal ({size(result['equal_bytes'])}), {result['missing']:,} missing, "
        f"{result['different']:,} different, {result['foreign']:,} foreign",
    ]
    if result["error"]:
        lines.append(f"Error        {result['error']}")
    lines += [f"{_SIGNS[row['kind']]} {row['path']}" for row in drift]
    more = drifted(result) - len(drift)
    if drift and more > 0:
        lines.append(f"… and {count(more, 'more', 'more')}")
    return Group(*map(line, lines))


def drifted(result: dict[str, Any]) -> int:
    """How many keys a verification found to be otherwise."""
    return int(result["missing"] + result["different"] + result["foreign"])
