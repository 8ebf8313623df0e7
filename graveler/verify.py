"""Recomputes the ids of files and commits: a repository's copy on a disk proves itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graveler.entries import AddressType
from graveler.errors import FormatError
from graveler.files import claimed_id, open_file
from graveler.identity import commit_id, file_id
from graveler.metarange import METARANGES, refs_of
from graveler.ranges import RANGES, entries_of
from graveler.sstable.reader import Table

REPOSITORY = "repository.json"


@dataclass(frozen=True, slots=True)
class Finding:
    """One file or commit: `problem` is "" if it is right. `unnamed` is the id of a file whose name is none."""

    name: str
    problem: str = ""
    unnamed: str = ""


def files_under(paths: list[Path]) -> Iterator[Path]:
    """The named files, and in folders all that are named by an id."""
    for path in paths:
        if path.is_dir():
            yield from (file for file in sorted(path.rglob("*")) if claimed_id(file) and file.is_file())
        else:
            yield path


def repositories_under(paths: list[Path]) -> Iterator[Path]:
    """The descriptions of repositories that stand beside a folder `_lakefs`."""
    for path in paths:
        if path.is_dir():
            description = path.parent / REPOSITORY if path.name == "_lakefs" else path
            candidates = [description] if description.name == REPOSITORY else sorted(path.rglob(REPOSITORY))
            yield from (
                candidate for candidate in candidates if candidate.is_file() and (candidate.parent / "_lakefs").is_dir()
            )


def check_file(path: Path) -> Finding:
    """Reads a file whole: checksums, records, entry identities, id. Never raises for what is in the file."""
    claimed = claimed_id(path)
    try:
        table = open_file(path)
        records = list(table.records())
        computed_id = file_id(records, table.identifying_properties())
        table.expect_id(computed_id, claimed)
        _check_records(table, records)
    except FormatError as error:
        return Finding(str(path), str(error))
    except OSError as error:
        return Finding(str(path), f"{path}: {error.strerror}")
    return Finding(str(path), "", "" if claimed else computed_id)


def _check_records(table: Table, records: list[tuple[bytes, bytes]]) -> None:
    """What stands in the records must make sense, too. Dumps of refs have records of their own kind."""
    properties = table.identifying_properties()
    if properties == {"type": METARANGES}:
        refs_of(table, records)
    if properties == {"type": RANGES}:
        for identity, entry in entries_of(table, records):
            # Before there were address types (2021), identities were made by another rule.
            if identity != entry.identity and entry.address_type is not AddressType.BY_PREFIX:
                raise FormatError(table.file, 0, f"entry {entry.path!r} with the identity of its own fields")


def check_commits(repository: Path) -> list[Finding]:
    """One finding for each commit that a repository.json lists. Raises FormatError if it is no such list."""
    try:
        commits = json.loads(repository.read_bytes())["commits"]
        return [check_commit(commit) for commit in commits]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(str(repository), 0, "JSON with a list of commits as lakeFS's API gives them") from error


def read_commit(record: Path) -> dict[str, Any]:
    """A commit record that lakeFS's API gave, with its `id` and `meta_range_id`. Raises FormatError if it is none, or
    if its fields don't give its id."""
    try:
        commit: dict[str, Any] = json.loads(record.read_bytes())
        problem = check_commit(commit).problem
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(str(record), 0, "JSON of a commit as lakeFS's API gives it") from error
    if problem:
        raise FormatError(str(record), 0, f"a commit of that id, but {problem}")
    return commit


def check_commit(commit: dict[str, Any]) -> Finding:
    """Recomputes the id of a commit as lakeFS's API gave it. Raises what a foreign structure raises."""
    computed_id = commit_id(
        committer=commit["committer"],
        message=commit["message"],
        metarange_id=commit["meta_range_id"],
        creation_date=commit["creation_date"],
        metadata=commit["metadata"],
        parents=commit["parents"],
    )
    name = f"commit {commit['id']}"
    return Finding(name, "" if computed_id == commit["id"] else f"{name}: its fields give {computed_id}")
