"""Somebody who looks at a destination after every write to it, and knows the commits by heart.

A marker says that all below it is there, of a commit that the place may hold: of the last success, or of a run since.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from core.export_places import status_uri
from core.markers import MARKER
from exports.models import Export, ExportRun
from tests.exports.memory_s3 import etag

if TYPE_CHECKING:
    from tests.fakes import Lake

NAME = MARKER.decode()
SUCCESS = "exported-successfully"


def prefix_of(place: str) -> str:
    """What the keys of a place begin with."""
    return place.removeprefix("s3://out/") + "/"


class Watcher:
    """What it saw that should never be stands in `problems`."""

    def __init__(self, lake: Lake, bucket: dict[str, bytes], foreign: Mapping[str, bytes]) -> None:
        self.lake, self.bucket, self.foreign = lake, bucket, foreign
        self.places: dict[str, set[str]] = {}
        self.success = "", ""
        self.problems: list[str] = []
        self.succeeded = 0

    # --- at every instant ---------------------------------------------------------------------------------------------

    def look(self, written: str = "") -> None:
        """Is there a marker above something that is not whole? Did `written` come before what it has to follow?"""
        export = Export.objects.get()
        self._note_places(export)
        for place, commits in self.places.items():
            prefix = prefix_of(place)
            for key in (key for key in self.bucket if key.startswith(prefix) and key.endswith(NAME)):
                self._judge_marker(prefix, key[len(prefix) :], commits)
        if written.endswith("/_SUCCESS"):
            self._judge_last_key(written)

    def _note_places(self, export: Export) -> None:
        """Which commits a place may hold: that of its last success, and all tried since."""
        success = export.path_at_success, export.last_success_ref
        if export.path_at_success and success != self.success:
            self.places[export.path_at_success], self.success = {export.last_success_ref}, success
        if export.attempted_path:
            self.places.setdefault(export.attempted_path, set()).update(export.attempted)

    def _judge_marker(self, prefix: str, path: str, commits: set[str]) -> None:
        """A file of the branch that has this name is none of ours, and says nothing."""
        if any(path.encode() in self.lake.trees[commit] for commit in commits):
            return
        directory = path.removesuffix(NAME)
        if not any(self.is_whole(prefix, directory, commit) for commit in commits):
            self.problems.append(f"{prefix}{path}: not all below it has arrived")

    def _judge_last_key(self, written: str) -> None:
        run = ExportRun.objects.get(ended_at=None)
        prefix = prefix_of(run.path)
        directory = written[len(prefix) :].removesuffix("_SUCCESS")
        if r".*/_SUCCESS" not in run.patterns or not written.startswith(prefix) or not directory:
            return
        if not self.is_whole(prefix, directory, run.ref, but=("_SUCCESS", NAME)):
            self.problems.append(f"{written}: it came before others of its directory")

    def is_whole(self, prefix: str, directory: str, commit: str, but: tuple[str, ...] = ()) -> bool:
        """Is all of a commit below this directory there, and nothing else but markers and what others have there?"""
        wanted = {path.decode(): entry.etag for path, entry in self.lake.trees[commit].items()}
        below = {path: tag for path, tag in wanted.items() if path.startswith(directory) and not path.endswith(but)}
        there = {
            key[len(prefix) :]: etag(data)
            for key, data in self.bucket.items()
            if key.startswith(prefix + directory) and key not in self.foreign and not key.endswith(but)
        }
        return below == {path: tag for path, tag in there.items() if path in wanted or not path.endswith(NAME)}

    # --- after a success ----------------------------------------------------------------------------------------------

    def judge_success(self) -> None:
        """If a run has just succeeded: is all of it true?"""
        run = ExportRun.objects.order_by("-pk").first()
        if run is None or run.outcome != SUCCESS or run.pk == self.succeeded:
            return
        self.succeeded = run.pk
        self.look()
        told = f"run {run.pk} of {run.ref[:8]}"
        if not self.is_whole(prefix_of(run.path), "", run.ref):
            self.problems.append(f"{told} succeeded, and {run.path} is not the commit")
        for directory in self._marked(run):
            if f"{prefix_of(run.path)}{directory}{NAME}" not in self.bucket:
                self.problems.append(f"{told} succeeded, and '{directory}' has no marker")
        status = status_uri(run.status_path, "lake", "main", run.ref).removeprefix("s3://out/")
        if not self.bucket.get(status, b"").startswith(f"status: {SUCCESS},".encode()):
            self.problems.append(f"{told} succeeded, and its status file does not say so")

    def _marked(self, run: ExportRun) -> set[str]:
        """Which directories a run had to mark."""
        return {one for one in self._touched(run) if any(re.search(pattern, one) for pattern in run.patterns)}

    def _touched(self, run: ExportRun) -> Iterator[str]:
        wanted = self.lake.trees[run.ref]
        for before in ("" if not run.base else run.base, *run.attempted):
            tree = self.lake.trees[before]
            for path in {*wanted, *tree}:
                ours, theirs = wanted.get(path), tree.get(path)
                if (ours and ours.etag) != (theirs and theirs.etag):
                    parts = path.decode().split("/")[:-1]
                    yield from ("".join(f"{part}/" for part in parts[:depth]) for depth in range(len(parts) + 1))
