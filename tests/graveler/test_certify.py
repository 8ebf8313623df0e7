"""`python -m graveler certify`: what a commit holds, from the bytes alone."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from graveler.__main__ import main
from graveler.certify import files_in, take_account
from graveler.metarange import read_metarange
from tests.graveler.recorded import RECORDED, bytes_of, commits_of

COMMIT = commits_of("lake")[0]
METARANGE = COMMIT["meta_range_id"]
RANGE = read_metarange(bytes_of("lake", METARANGE))[0].id
FACTS = {"commit": COMMIT["id"], "metarange": METARANGE, "ranges": 1, "entries": 8, "bytes": 68}
DIGEST = hashlib.sha256(json.dumps(FACTS, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A copy of the recorded namespace that may be spoilt."""
    shutil.copytree(RECORDED / "lake", tmp_path / "lake")
    return tmp_path / "lake"


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """The commit as the server gave it."""
    path = tmp_path / "commit.json"
    path.write_text(json.dumps(COMMIT))
    return path


def certify(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    status = main(["certify", *map(str, arguments)])
    return status, *capsys.readouterr()


@pytest.mark.parametrize("folder", ["", "_lakefs"])
def test_a_record_and_a_folder_give_the_content_and_its_digest(
    lake: Path, record: Path, folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = certify(capsys, lake / folder, record)
    assert (status, json.loads(out), err) == (0, {**FACTS, "content_digest": DIGEST}, "")


def test_ids_give_the_same_and_say_that_the_commits_is_taken_as_given(
    lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = certify(capsys, lake, COMMIT["id"], METARANGE)
    assert (status, json.loads(out)["content_digest"]) == (0, DIGEST)
    assert "taken as given" in err


def test_the_first_commit_of_a_repository_holds_nothing(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = certify(capsys, lake, "c" * 64, "")
    assert (status, json.loads(out)["ranges"], json.loads(out)["bytes"]) == (0, 0, 0)


@pytest.mark.parametrize(("kind", "file_id"), [("metarange", METARANGE), ("range", RANGE)])
def test_one_changed_byte_names_the_file(
    lake: Path, record: Path, kind: str, file_id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = lake / "_lakefs" / file_id
    path.write_bytes(bytes_of("lake", file_id)[:40] + b"!" + bytes_of("lake", file_id)[41:])
    status, out, _ = certify(capsys, lake, record)
    assert status == 1
    assert out.startswith(f"wrong: {kind} {file_id}: at byte ")
    assert "digest" not in out


@pytest.mark.parametrize("file_id", [METARANGE, RANGE])
def test_no_byte_may_change(file_id: str) -> None:
    whole = bytes_of("lake", file_id)
    read = files_in(RECORDED / "lake")
    for at in range(0, len(whole), 11):
        bad = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        account = take_account(
            COMMIT["id"],
            METARANGE,
            lambda one, bad=bad: bad if one == file_id else read(one),  # type: ignore[misc]
        )
        assert account.content is None
        assert file_id in account.problems[0]


def test_every_file_that_is_missing_is_named(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    big = commits_of("big")[0]
    status, out, _ = certify(capsys, RECORDED / "big", big["id"], big["meta_range_id"])
    missing = [ref.id for ref in read_metarange(bytes_of("big", big["meta_range_id"]))]
    missing = [one for one in missing if not (RECORDED / "big" / "_lakefs" / one).exists()]
    assert (status, len(missing) > 1) == (1, True)
    assert out.splitlines() == [f"wrong: range {one}: No such file or directory" for one in missing]


def test_a_record_that_was_changed_is_no_proof(lake: Path, record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record.write_text(json.dumps(COMMIT | {"message": "another"}))
    status, out, err = certify(capsys, lake, record)
    assert (status, out) == (1, "")
    assert f"commit {COMMIT['id']}: its fields give" in err


@pytest.mark.parametrize("text", ["", "[]", "{}", '"x"', "\x00"])
def test_a_file_that_is_no_record_is_one_line_of_error(
    lake: Path, record: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    record.write_text(text)
    status, out, err = certify(capsys, lake, record)
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert "expected JSON of a commit" in err


@pytest.mark.parametrize("folder", ["nowhere", "s3://bucket/lake"])
def test_a_place_that_is_no_folder_is_told(folder: str, record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = certify(capsys, folder, record)
    assert (status, "a folder on this disk" in err) == (1, True)
    assert certify(capsys, RECORDED, RECORDED / "none.json")[0] == 1
