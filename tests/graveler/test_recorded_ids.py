"""Our reader and writer beside what real lakeFS servers recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graveler.errors import FormatError
from graveler.identity import commit_id, file_id
from graveler.metarange import read_metarange, write_metarange
from graveler.ranges import entries_of, read_range, write_range, write_ranges
from graveler.sstable.reader import Table, open_table
from tests.graveler.recorded import bytes_of, commits_of, files_of

FILES = [*files_of("lake"), *files_of("big")]
COMMITS = [*commits_of("lake"), *commits_of("big")]


def opened(path: Path) -> Table:
    return open_table(path.read_bytes(), path.name)


def paths_of(kind: str) -> list[Path]:
    return [path for path in FILES if opened(path).identifying_properties() == {"type": kind}]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name[:8])
def test_every_recorded_file_is_named_by_the_id_that_we_compute(path: Path) -> None:
    table = opened(path)
    assert file_id(table.records(), table.identifying_properties()) == path.name


@pytest.mark.parametrize("commit", COMMITS, ids=lambda commit: commit["id"][:8])
def test_every_recorded_commit_has_the_id_that_we_compute(commit: dict[str, Any]) -> None:
    found = commit_id(
        committer=commit["committer"],
        message=commit["message"],
        metarange_id=commit["meta_range_id"],
        creation_date=commit["creation_date"],
        metadata=commit["metadata"],
        parents=commit["parents"],
    )
    assert found == commit["id"]


@pytest.mark.parametrize("path", paths_of("ranges"), ids=lambda path: path.name[:8])
def test_our_writer_gives_a_recorded_range_back_byte_for_byte(path: Path) -> None:
    data = path.read_bytes()
    written = write_range(read_range(data, expected_id=path.name))
    assert written.id == path.name
    assert written.data == data


@pytest.mark.parametrize("path", paths_of("metaranges"), ids=lambda path: path.name[:8])
def test_our_writer_gives_a_recorded_metarange_back_byte_for_byte(path: Path) -> None:
    data = path.read_bytes()
    written = write_metarange(read_metarange(data, expected_id=path.name))
    assert written.id == path.name
    assert written.data == data


@pytest.mark.parametrize("path", paths_of("ranges"), ids=lambda path: path.name[:8])
def test_each_entry_carries_the_identity_of_its_own_fields(path: Path) -> None:
    table = opened(path)
    assert all(identity == entry.identity for identity, entry in entries_of(table, list(table.records())))


def test_entries_of_each_lake_commit_give_its_ranges_metarange_and_commit_again() -> None:
    for commit in commits_of("lake"):
        if not commit["meta_range_id"]:
            continue
        refs = read_metarange(bytes_of("lake", commit["meta_range_id"]), expected_id=commit["meta_range_id"])
        entries = [e for ref in refs for e in read_range(bytes_of("lake", ref.id), expected_id=ref.id)]
        written = [range_file.ref for range_file in write_ranges(entries)]
        assert [ref.id for ref in written] == [ref.id for ref in refs]
        assert write_metarange(written).id == commit["meta_range_id"]


def test_entries_of_the_big_import_give_its_ranges_and_metarange_again(all_fixtures: Path) -> None:
    folder = all_fixtures / "lakefs-run" / "big" / "_lakefs"
    imported = next(c for c in commits_of("big") if c["generation"] == 2)["meta_range_id"]
    refs = read_metarange((folder / imported).read_bytes(), expected_id=imported)
    entries = [e for ref in refs for e in read_range((folder / ref.id).read_bytes(), expected_id=ref.id)]
    written = [range_file.ref for range_file in write_ranges(entries)]
    assert written == refs
    assert write_metarange(written).id == imported


def test_a_range_is_refused_under_another_id() -> None:
    path = paths_of("ranges")[0]
    with pytest.raises(FormatError, match="content of id 0000"):
        read_range(path.read_bytes(), expected_id="0" * 64)


def test_a_metarange_is_no_range() -> None:
    path = paths_of("metaranges")[0]
    with pytest.raises(FormatError, match="a file of type ranges"):
        read_range(path.read_bytes())
