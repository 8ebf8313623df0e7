"""What a change of an export's configuration will do, in sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from core.exporting.manifests import Mode


def consequences(before: Mapping[str, Any], after: Mapping[str, Any], *, ever: bool) -> list[str]:
    """By the columns of an export. `ever`: something has been exported under the settings before."""
    effects = [*_of_path(before, after, ever), *_of_status(before, after), *_of_patterns(before, after, ever)]
    effects += [*_of_mode(before, after), *_of_manifest(before, after), *_of_actions(before, after, ever)]
    effects += _of_limits(before, after)
    return effects or ["Nothing changes. The current head of the branch is exported unless it is already."]


def _of_path(before: Mapping[str, Any], after: Mapping[str, Any], ever: bool) -> Iterator[str]:
    old, new = before["path"], after["path"]
    if old == new:
        return
    yield f"Everything is exported again, to {new}: files at another path don't count."
    if ever:
        yield f"The files at {old} stay as they are and are no longer updated: remove them yourself."


def _of_status(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    old, new = before["status_path"], after["status_path"]
    if old == new:
        return
    yield (
        f"Status files and manifests are written to {new} from the next run on."
        if new
        else ("No more status files and manifests are written.")
    )
    if old:
        yield f"Those at {old} stay."


def _of_patterns(before: Mapping[str, Any], after: Mapping[str, Any], ever: bool) -> Iterator[str]:
    if list(before["patterns"]) == list(after["patterns"]):
        return
    yield "The new expressions apply from the next run on, to directories in which that run changes something."
    if ever and before["path"] == after["path"]:
        yield "Markers of other directories stay as they are, and none are added there."


def _of_mode(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    if before["continuous"] and not after["continuous"]:
        yield "The current head of the branch is exported once more; later commits are not."
    if after["continuous"] and not before["continuous"]:
        yield "Every commit from now on is exported."


def _of_manifest(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    words = {
        Mode.ALWAYS: "Every successful run writes a manifest from now on.",
        Mode.DAILY: "A manifest is written at most once a day from now on.",
        Mode.NEVER: "No more manifests are written; existing ones stay.",
    }
    if before["manifest"] != after["manifest"] and after["status_path"]:
        yield words[Mode(after["manifest"])]


def _of_actions(before: Mapping[str, Any], after: Mapping[str, Any], ever: bool) -> Iterator[str]:
    if after["actions"] and not before["actions"]:
        yield "Files below _lakefs_actions/ are exported too."
    if before["actions"] and not after["actions"]:
        removed = " Those that were exported are removed." if ever and before["path"] == after["path"] else ""
        yield f"Files below _lakefs_actions/ are no longer exported.{removed}"


def _of_limits(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    names = ("objects_per_second", "bytes_per_second")
    if any(before[name] != after[name] for name in names):
        yield "The new limits apply to a running export too."
