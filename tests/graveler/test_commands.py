"""`python -m graveler` as a user sees it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from graveler.__main__ import main
from graveler.entries import Entry, Timestamp, encode_entry
from graveler.metarange import write_metarange
from graveler.ranges import RangeWriter, write_range
from graveler.values import pack_value
from tests.graveler.recorded import RECORDED, commits_of

RANGE = "ec3b7fb090ded3faa0d88ff2fbcc649f87f40c9aceecd76f6385e055d3e8c903"
DUMP_OF_REFS = "df6a5113b45d985bb7adad360792e3a773ea28d5ca0418b8cc7c70fbd71479f2"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A copy of the recorded repository that may be spoilt."""
    shutil.copytree(RECORDED / "lake", tmp_path / "lake")
    return tmp_path / "lake"


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def put(folder: Path, *entries: Entry) -> Path:
    written = write_range(entries)
    path = folder / written.id
    path.write_bytes(written.data)
    return path


def test_verify_finds_the_recorded_repositories_right(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(RECORDED)]) == 0
    assert capsys.readouterr().out == "25 files, 25 right\n15 commits, 15 right\n"


def test_verify_names_the_damaged_file(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = lake / "_lakefs" / RANGE
    path.write_bytes(path.read_bytes().replace(b"main-only", b"main-ONLY"))
    assert main(["verify", str(lake)]) == 1
    wrong, files, commits = capsys.readouterr().out.splitlines()
    assert wrong == f"wrong: {path}: at byte 0: expected a block that agrees with its checksum"
    assert (files, commits) == ("18 files, 17 right, 1 wrong", "9 commits, 9 right")


def test_verify_finds_a_file_under_the_name_of_another(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (lake / "_lakefs" / RANGE).write_bytes((lake / "_lakefs" / DUMP_OF_REFS).read_bytes())
    assert main(["verify", str(lake / "_lakefs")]) == 1
    assert f"expected content of id {RANGE}, not {DUMP_OF_REFS}" in capsys.readouterr().out


def test_verify_finds_a_commit_that_was_tampered_with(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = lake / "repository.json"
    path.write_text(path.read_text().replace('"on dev"', '"on prod"'))
    assert main(["verify", str(lake)]) == 1
    out = capsys.readouterr().out
    assert "9 commits, 8 right, 1 wrong" in out
    assert any(f"wrong: commit {commit['id']}" in out for commit in commits_of("lake"))


def test_verify_finds_an_entry_under_another_identity(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry, other = Entry(b"k", "a", 1, "e"), Entry(b"k", "a", 2, "e")
    writer = RangeWriter()
    writer.add_record(b"k", pack_value(other.identity, encode_entry(entry)))
    written = writer.finish()
    (tmp_path / written.id).write_bytes(written.data)
    assert main(["verify", str(tmp_path)]) == 1
    assert "expected entry b'k' with the identity of its own fields" in capsys.readouterr().out


def test_verify_tells_the_id_of_a_file_that_is_not_named_by_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "some.sst"
    shutil.copy(RECORDED / "lake" / "_lakefs" / RANGE, path)
    assert main(["verify", str(path)]) == 0
    assert capsys.readouterr().out == (
        f"{path}: whole, of id {RANGE}, which is not its name\n1 file, 0 right, 1 not named by an id\n"
    )


def test_verify_of_a_folder_without_files_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(tmp_path)]) == 1
    assert "files that are named by ids" in capsys.readouterr().err


def test_verify_of_a_list_of_commits_that_is_none(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (lake / "repository.json").write_text("{")
    assert main(["verify", str(lake)]) == 1
    assert "expected JSON with a list of commits" in capsys.readouterr().err


def test_dump_of_a_range_equals_what_the_server_listed(capsys: pytest.CaptureFixture[str]) -> None:
    description = json.loads((RECORDED / "lake" / "repository.json").read_text())
    for branch in description["branches"]:
        commit = next(one for one in commits_of("lake") if one["id"] == branch["commit_id"])
        assert main(["dump", str(RECORDED / "lake" / "_lakefs" / commit["meta_range_id"])]) == 0
        shown = []
        for ref in lines(capsys.readouterr().out):
            assert main(["dump", str(RECORDED / "lake" / "_lakefs" / str(ref["id"]))]) == 0
            shown += lines(capsys.readouterr().out)
        listed = description["first_objects"][branch["id"]]
        namespace = description["repository"]["storage_namespace"]
        assert [
            (entry["path"], f"{namespace}/{entry['address']}", entry["size"], entry["etag"]) for entry in shown
        ] == [(one["path"], one["physical_address"], one["size_bytes"], one["checksum"]) for one in listed]


def test_dump_shows_each_field_and_a_key_that_is_no_text_in_base64(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    early, late = (
        Entry(b"a", "data/1", 1, "e1", Timestamp(1_795_251_119, 120_000_000)),
        Entry(b"\xff\xfe", "data/2", 2, "e2"),
    )
    path = put(tmp_path, early, late)
    assert main(["dump", str(path)]) == 0
    first, second = lines(capsys.readouterr().out)
    assert first == {
        "path": "a",
        "address": "data/1",
        "address_type": "relative",
        "size": 1,
        "etag": "e1",
        "last_modified": "2026-11-21T08:51:59.12Z",
    }
    assert second["path_base64"] == "//4="
    assert second["last_modified"] is None
    metarange = write_metarange([write_range([early, late]).ref])
    (tmp_path / metarange.id).write_bytes(metarange.data)
    assert main(["dump", str(tmp_path / metarange.id)]) == 0
    assert lines(capsys.readouterr().out) == [{"id": path.name, "min_key": "a", "max_key_base64": "//4=", "count": 2}]


def test_dump_prints_not_one_entry_of_a_damaged_file(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = lake / "_lakefs" / RANGE
    path.write_bytes(path.read_bytes()[:-1])
    assert main(["dump", str(path)]) == 1
    out, error = capsys.readouterr()
    assert out == ""
    assert error.startswith(f"{path}: at byte ") and error.count("\n") == 1


@pytest.mark.parametrize("name", ["nowhere", ".", "repository.json", f"_lakefs/{DUMP_OF_REFS}"])
def test_dump_of_anything_else_is_one_line_of_error(lake: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", str(lake / name)]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_diff_of_two_ranges_and_of_two_metaranges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    same, old, new = Entry(b"a", "x", 1, "e"), Entry(b"b", "x", 1, "e"), Entry(b"b", "y", 2, "f")
    sides = [(same, old), (same, new, Entry(b"\xff", "z", 3, "g"))]
    ranges = [put(tmp_path, *side) for side in sides]
    metaranges = []
    for side in sides:
        written = write_metarange([write_range(side).ref])
        (tmp_path / written.id).write_bytes(written.data)
        metaranges.append(tmp_path / written.id)
    for a, b in (ranges, metaranges):
        assert main(["diff", str(a), str(b)]) == 0
        changed, added = lines(capsys.readouterr().out)
        assert (changed["change"], changed["path"]) == ("changed", "b")
        assert changed["before"]["size"] == 1 and changed["after"]["size"] == 2  # type: ignore[index]
        assert (added["change"], added["path_base64"]) == ("added", "/w==")
    assert main(["diff", str(ranges[0]), str(metaranges[0])]) == 1
    assert "a file of type ranges" in capsys.readouterr().err


def test_diff_names_a_range_that_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = write_metarange([write_range([Entry(b"a", "x", 1, "e")]).ref])
    empty = write_metarange([])
    for file in (written, empty):
        (tmp_path / file.id).write_bytes(file.data)
    assert main(["diff", str(tmp_path / written.id), str(tmp_path / empty.id)]) == 1
    assert "No such file" in capsys.readouterr().err


def test_the_module_runs_by_itself_and_survives_a_closed_pipe() -> None:
    command = f"{sys.executable} -m graveler dump {RECORDED}/lake/_lakefs/{RANGE} | head -1"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True, cwd=Path.cwd())
    assert json.loads(done.stdout)["path"] == "_lakefs_actions/notify.yaml"
    assert done.stderr == ""
