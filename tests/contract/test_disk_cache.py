"""Metadata kept on the local disk: bounded, shared by processes, and never in anybody's way."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from adapters.disk_cache import LocalCache
from deployment import config
from deployment.wiring import clients
from tests.deployment.test_config import changed

LOCAL_CACHE = clients.local_cache
"""The real one, whatever stands in for it in other tests of this process."""

SHARE = 1000
SIZE = 16 * SHARE


def file_id(number: int, first: str = "a") -> str:
    """An id of 64 hex digits; those of one first digit share a bound."""
    return first + hashlib.sha256(str(number).encode()).hexdigest()[1:]


def on_disk(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def age(folder: Path) -> None:
    """Let a minute pass for every file."""
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, ns=(0, path.stat().st_mtime_ns - 60 * 10**9))


def test_what_was_put_is_got_also_by_another_process(tmp_path: Path) -> None:
    LocalCache(tmp_path, SIZE).put(file_id(1), b"content")
    assert LocalCache(tmp_path, SIZE).get(file_id(1)) == b"content"
    assert LocalCache(tmp_path, SIZE).get(file_id(2)) is None


def test_the_least_recently_used_leave_first(tmp_path: Path) -> None:
    cache = LocalCache(tmp_path, SIZE)
    for number in range(3):
        age(tmp_path)
        cache.put(file_id(number), b"x" * 300)
    age(tmp_path)
    assert cache.get(file_id(0))
    age(tmp_path)
    cache.put(file_id(3), b"x" * 300)
    assert [cache.get(file_id(number)) is not None for number in range(4)] == [True, False, True, True]


def test_it_never_holds_more_than_its_size(tmp_path: Path) -> None:
    cache = LocalCache(tmp_path, SIZE)
    for number in range(200):
        cache.put(file_id(number, first="0123456789abcdef"[number % 16]), b"x" * (number + 50))
    assert 0 < on_disk(tmp_path) <= SIZE
    cache.put(file_id(999), b"x" * (SHARE + 1))
    assert cache.get(file_id(999)) is None


def test_several_processes_write_to_one_folder(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib\n"
        "from adapters.disk_cache import LocalCache\n"
        "from tests.contract.test_disk_cache import SIZE, file_id\n"
        "cache = LocalCache(pathlib.Path(sys.argv[1]), SIZE)\n"
        "for number in range(300):\n"
        "    cache.put(file_id(number % 20), b'%d' % (number % 20) * 40)\n"
        "    found = cache.get(file_id(number % 20))\n"
        "    assert found in (None, b'%d' % (number % 20) * 40), found\n"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], cwd=config.BASE_DIR, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    assert [(process.communicate()[1].decode(), process.returncode) for process in started] == [("", 0)] * 3
    assert 0 < on_disk(tmp_path) <= SHARE


def test_other_files_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    cache = LocalCache(tmp_path, SIZE)
    cache.put(file_id(1), b"x")
    other = tmp_path / "metadata" / "a" / "notes.txt"
    other.write_bytes(b"x" * 5000)
    cache.put(file_id(2), b"x" * SHARE)
    assert other.exists()
    assert cache.get(file_id(2))


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "/etc/passwd", "A" * 64, "a\0", "a" * 65])
def test_what_is_no_id_names_no_file(tmp_path: Path, name: str) -> None:
    cache = LocalCache(tmp_path, SIZE)
    cache.put(name, b"x")
    assert cache.get(name) is None
    assert on_disk(tmp_path) == 0


def test_a_folder_that_can_not_be_written_is_a_warning_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = LocalCache(tmp_path / "file", SIZE)
    for number in range(3):
        cache.put(file_id(number), b"x")
        assert cache.get(file_id(number)) is None
    assert caplog.text.count("metadata is not kept on the local disk") == 1


@pytest.mark.parametrize(("base_dir", "lies"), [("kept", "var/kept"), ("{tmp}/elsewhere", "elsewhere")])
def test_it_lies_where_and_is_as_large_as_the_configuration_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, base_dir: str, lies: str
) -> None:
    told = config.parse(
        changed("local_cache", {"base_dir": base_dir.format(tmp=tmp_path), "size_bytes": SIZE}),
    )
    monkeypatch.setattr(config, "current", lambda: told)
    monkeypatch.setenv("LAKEMIRROR_VAR", str(tmp_path / "var"))
    cache = LOCAL_CACHE.__wrapped__()
    cache.put(file_id(1), b"x" * SHARE)
    cache.put(file_id(2), b"x" * (SHARE + 1))
    assert [path.name for path in (tmp_path / lies).rglob("*") if path.is_file()] == [file_id(1)]


def test_a_file_that_another_process_trims_before_it_is_whole_is_just_not_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = LocalCache(tmp_path, SIZE)

    def trimmed(self: Path, target: Path) -> Path:
        self.unlink()
        raise FileNotFoundError(str(self))

    with mock.patch.object(Path, "replace", trimmed):
        cache.put(file_id(1), b"x")
    assert cache.get(file_id(1)) is None
    assert not caplog.records
