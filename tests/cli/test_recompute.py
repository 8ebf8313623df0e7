"""`certify --check`: what a copy of the files gives, told by the reader, a program of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.answers import CERTIFICATE
from tests.cli.speaking import StandIn, Terminal
from tests.graveler.recorded import RECORDED, commits_of

CONTENT = {name: CERTIFICATE[name] for name in ("commit", "metarange", "ranges", "entries", "bytes", "content_digest")}


def check(
    monkeypatch: pytest.MonkeyPatch, server: StandIn, run: Terminal, folder: Path, printed: str, status: int = 0
) -> tuple[int, str, str]:
    """What `--check` says when the reader prints that and ends so; it expects the certificate's commit."""
    reader = folder / "reader" / "graveler"
    reader.mkdir(parents=True)
    (reader / "__init__.py").touch()
    (reader / "certify.py").touch()
    wanted = ["certify", str(folder), CERTIFICATE["commit"], CERTIFICATE["metarange"]]
    (reader / "__main__.py").write_text(
        f"import sys\nassert sys.argv[1:] == {wanted}\nprint({printed!r})\nsys.exit({status})"
    )
    monkeypatch.setattr("lakemirror.recompute._reader", lambda: reader.parent)
    server.says("GET", "/repositories/lake/mirrors/lake-eu/commits/94e84f/certificate", CERTIFICATE)
    done = run("mirror", "certify", "lake-eu", "94e84f", "--repository", "lake", "--check", str(folder))
    return done.exit_code, done.stdout, done.stderr


def test_bytes_that_give_the_same_are_said_to(
    monkeypatch: pytest.MonkeyPatch, server: StandIn, run: Terminal, tmp_path: Path
) -> None:
    status, shown, _ = check(monkeypatch, server, run, tmp_path, json.dumps(CONTENT, indent=1))
    assert (status, shown.splitlines()[-1]) == (0, f"The bytes in {tmp_path} give the same content digest.")


@pytest.mark.parametrize(
    ("printed", "status", "words"),
    [
        (json.dumps(CONTENT | {"content_digest": "00", "entries": 20113}), 0, "20,113 entries"),
        ("wrong: range ab12: at byte 17, expected a block", 1, "wrong: range ab12: at byte 17, expected a block"),
    ],
)
def test_bytes_that_do_not_are_told_and_end_with_one(
    monkeypatch: pytest.MonkeyPatch,
    server: StandIn,
    run: Terminal,
    tmp_path: Path,
    printed: str,
    status: int,
    words: str,
) -> None:
    ended: Any = check(monkeypatch, server, run, tmp_path, printed, status)
    assert ended[:2] == (1, "")
    assert words in ended[2]


def test_the_reader_gives_it_from_recorded_files(server: StandIn, run: Terminal) -> None:
    reader = pytest.importorskip("graveler.certify")
    commit = commits_of("lake")[0]
    content = reader.take_account(commit["id"], commit["meta_range_id"], reader.files_in(RECORDED / "lake")).content
    told = CERTIFICATE | content.facts() | {"content_digest": content.digest()}
    server.says("GET", "/repositories/lake/mirrors/lake-eu/commits/94e84f/certificate", told)
    done = run("mirror", "certify", "lake-eu", "94e84f", "--repository", "lake", "--check", str(RECORDED / "lake"))
    assert (done.exit_code, done.stderr) == (0, "")


def test_without_the_reader_it_says_what_to_use(
    monkeypatch: pytest.MonkeyPatch, server: StandIn, run: Terminal
) -> None:
    monkeypatch.setitem(sys.modules, "graveler.certify", None)
    server.says("GET", "/repositories/lake/mirrors/lake-eu/commits/94e84f/certificate", CERTIFICATE)
    done = run("mirror", "certify", "lake-eu", "94e84f", "--repository", "lake", "--check", ".")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "use ./scripts/lakemirror in a checkout" in done.stderr
