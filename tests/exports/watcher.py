"""Somebody who looks at a destination after every write to it, and knows the commits by heart.

A marker says that all below it is there, of a commit that the place may hold: of the last success, or of a run since.
Somebody's own files are `theirs`, wherever they lie: they stay, unless the commit of a run has a file of that key. What
they left in place of one of ours (none: nothing) has `drifted`, and nobody else is to be blamed for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import TYPE_CHECKING

from core.exporting.destinations import status_uri
from core.exporting.markers import MARKER
from core.installations.places import inside, overlap
from exports.models import Export, ExportRun
from mirrors.models import Mirror
from tests.exports.memory_s3 import etag

if TYPE_CHECKING:
    from tests.fakes import Lake

NAME = MARKER.decode()
SUCCESS = "exported-successfully"
PLACES = ("s3://out/latest", "s3://out/other")


def prefix_of(place: str) -> str:
    """What the keys of a place begin with."""
    return place.removeprefix("s3://out/") + "/"


class Watcher:
    """What it saw that should never be stands in `problems`."""

    def __init__(self, lake: Lake, bucket: dict[str, bytes], foreign: Mapping[str, bytes]) -> None:
        self.lake, self.bucket, self.foreign = lake, bucket, foreign
        self.theirs: dict[str, bytes] = {}
        self.drifted: dict[str, bytes | None] = {}
        self.given_up: dict[str, bytes] = {}
        self.places: dict[str, set[str]] = {}
        self.success = "", ""
        self.problems: list[str] = []
        self.succeeded = 0

    # --- at every instant ---------------------------------------------------------------------------------------------

    def look(self, written: str = "") -> None:
        """Is there a marker above something that is not whole? Did `written` come before what it has to follow?"""
        export = Export.objects.get()
        self._judge_theirs()
        self._note_places(export)
        for place, commits in self.places.items():
            prefix = prefix_of(place)
            for key in (key for key in self.bucket if key.startswith(prefix) and key.endswith(NAME)):
                self._judge_marker(prefix, key[len(prefix) :], commits)
        self._judge_status()
        if written.endswith("/_SUCCESS"):
            self._judge_last_key(written)

    def _note_places(self, export: Export) -> None:
        """Which commits a place may hold: that of its last success, and all tried since."""
        success = export.path_at_success, export.last_success_ref
        if export.path_at_success and success != self.success:
            self.places[export.path_at_success], self.success = {export.last_success_ref}, success
        if export.attempted_path:
            self.places.setdefault(export.attempted_path, set()).update(export.attempted)

    def _judge_status(self) -> None:
        """No commit is called exported while its files are being written."""
        for run in ExportRun.objects.filter(ended_at=None, phase__in=["copy", "last", "markers", "manifest"]):
            if self._status_of(run).startswith(f"status: {SUCCESS},".encode()):
                self.problems.append(f"run {run.pk} writes, and its status file says {SUCCESS}")

    def _status_of(self, run: ExportRun) -> bytes:
        uri = status_uri(run.status_path, "lake", "main", run.ref)
        return self.bucket.get(uri.removeprefix("s3://out/"), b"")

    def _judge_marker(self, prefix: str, path: str, commits: set[str]) -> None:
        """A file of the branch that has this name is none of ours, and says nothing; nor does one of somebody else."""
        if prefix + path in self.theirs or any(path.encode() in self.lake.trees[commit] for commit in commits):
            return
        directory = path.removesuffix(NAME)
        if not any(self.is_whole(prefix, directory, commit) for commit in commits):
            self.problems.append(f"{prefix}{path}: not all below it has arrived")

    def _judge_theirs(self) -> None:
        for key, data in list(self.theirs.items()):
            there = self.bucket.get(key)
            if there == data:
                continue
            del self.theirs[key]
            if there is None or not self._is_of_a_run(key, there):
                self.problems.append(f"{key}: somebody's own file was {'removed' if there is None else 'replaced'}")

    def _is_of_a_run(self, key: str, data: bytes) -> bool:
        """Is it what the commit of the last run has at this key?"""
        run = ExportRun.objects.latest("pk")
        entry = self.lake.trees[run.ref].get(key.removeprefix(prefix_of(run.path)).encode())
        return key.startswith(prefix_of(run.path)) and entry is not None and entry.etag == etag(data)

    def judge_write(self, key: str) -> None:
        """Nothing is written where a mirror lies."""
        for namespace in Mirror.objects.values_list("storage_namespace", flat=True):
            if inside(f"s3://out/{key}", namespace):
                self.problems.append(f"{key}: written where a mirror lies, {namespace}")

    def judge_places(self) -> None:
        """No two of those who write have one place, or one in another."""
        taken = list(Mirror.objects.values_list("storage_namespace", flat=True))
        for export in Export.objects.all():
            runs = export.runs.filter(ended_at=None)
            taken += {export.path, *runs.values_list("path", flat=True)}
            taken += filter(None, {export.status_path, *runs.values_list("status_path", flat=True)})
        self.problems += [
            f"{one} and {other} overlap" for one, other in combinations(sorted(taken), 2) if overlap(one, other)
        ]

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
            if (key not in self.theirs and self.given_up.get(key) != data) or key[len(prefix) :] in wanted
        }
        for key in (key[len(prefix) :] for key in self.adrift() if key.startswith(prefix)):
            below.pop(key, None), there.pop(key, None)
        return below == {path: tag for path, tag in there.items() if path in wanted or not path.endswith(NAME)}

    def give_up(self, namespace: str) -> None:
        """A mirror has a place that was left: what lies there is nobody's any more, and stays."""
        for place in filter(lambda place: overlap(place, namespace), PLACES):
            self.given_up |= {key: data for key, data in self.bucket.items() if key.startswith(prefix_of(place))}

    def adrift(self) -> set[str]:
        """Keys at which still lies what others left there in place of ours."""
        return {key for key, data in self.drifted.items() if self.bucket.get(key) == data}

    # --- after a success ----------------------------------------------------------------------------------------------

    def judge_success(self, *, again: bool = False) -> None:
        """If a run has just succeeded: is all of it true? Once for each, or `again`: is it still?"""
        run = ExportRun.objects.order_by("-pk").first()
        if run is None or run.outcome != SUCCESS or (run.pk == self.succeeded and not again):
            return
        self.succeeded = run.pk
        self.look()
        told = f"run {run.pk} of {run.ref[:8]}"
        if not self.is_whole(prefix_of(run.path), "", run.ref):
            self.problems.append(f"{told} succeeded, and {run.path} is not the commit")
        for directory in self._marked(run):
            marker = f"{prefix_of(run.path)}{directory}{NAME}"
            if marker not in self.bucket or marker in self.theirs:
                self.problems.append(f"{told} succeeded, and '{directory}' has no marker")
        if not self._status_of(run).startswith(f"status: {SUCCESS},".encode()):
            self.problems.append(f"{told} succeeded, and its status file does not say so")
        if run.told.encode() != self._status_of(run):
            self.problems.append(f"{told}: what is told of its status file is not what it says")

    def _marked(self, run: ExportRun) -> set[str]:
        """Which directories a run had to mark. One that repairs looks at some of them only."""
        if run.repairs_id:
            return set()
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
