"""A certificate from the API of one machine, and the same digest on another that has nothing but the copy's bytes."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from rbac import services as rbac
from rbac.models import User
from tests.api import MIRRORS
from tests.mirrors.harness import NAMESPACE, Deployment

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).resolve().parents[2]
CONTENT = ("commit", "metarange", "ranges", "entries", "bytes", "content_digest")
ENDS_A_RANGE = ("day-076579", "day-204824")
"""Paths after which lakeFS's rule begins another range."""


@dataclass(frozen=True)
class Elsewhere:
    """Another machine: a folder with the reader and a copy of the mirror's files, and no variable of ours."""

    folder: Path

    @property
    def metadata(self) -> Path:
        return self.folder / "copy/_lakefs"

    def fetch(self, objects: Mapping[str, bytes]) -> None:
        """Download what is below the mirror's namespace."""
        shutil.copytree(ROOT / "graveler", self.folder / "graveler", ignore=shutil.ignore_patterns("__pycache__"))
        for uri, data in objects.items():
            path = self.folder / "copy" / uri.removeprefix(f"{NAMESPACE}/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def certify(self, commit: str, metarange: str) -> tuple[int, str]:
        """Status and output of the reader."""
        command = [sys.executable, "-m", "graveler", "certify", "copy", commit, metarange]
        done = subprocess.run(command, cwd=self.folder, env={}, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout

    def flip(self, file_id: str) -> None:
        """Change one bit of one byte in the middle of a file; a second time, back."""
        data = bytearray((self.metadata / file_id).read_bytes())
        data[len(data) // 2] ^= 1
        (self.metadata / file_id).write_bytes(data)


def fetched(url: str, user: User) -> dict[str, Any]:
    """What the API answers over HTTP to somebody with a key."""
    issued = rbac.key_create(actor="system:tests", user=user)
    pair = base64.b64encode(f"{issued.key.key_id}:{issued.secret}".encode()).decode()
    with urlopen(Request(url, headers={"Authorization": f"Basic {pair}"}), timeout=30) as answer:
        told: dict[str, Any] = json.load(answer)
        return told


def test_the_copys_bytes_give_the_certificates_digest_and_name_the_file_that_was_changed(
    lm: Deployment, live_server: Any, owner: User, tmp_path: Path
) -> None:
    commit = lm.lake.commit(files={path: path.encode() for path in ("a", *ENDS_A_RANGE, "z")})
    lm.arrive()
    lm.work()
    told = fetched(f"{live_server.url}{MIRRORS}/lake-eu/commits/{commit}/certificate", owner)
    assert (told["commit"], told["ranges"], told["entries"]) == (commit, 3, 4)

    elsewhere = Elsewhere(tmp_path)
    elsewhere.fetch({uri: data for uri, data in lm.eu_store.objects.items() if uri.startswith(NAMESPACE)})
    status, said = elsewhere.certify(commit, told["metarange"])
    assert (status, json.loads(said)) == (0, {name: told[name] for name in CONTENT})

    metarange, _, second, _ = lm.lake.files_of(commit)
    for kind, file_id in (("range", second), ("metarange", metarange)):
        elsewhere.flip(file_id)
        status, said = elsewhere.certify(commit, metarange)
        assert (status, said.count("\n")) == (1, 1)
        assert said.startswith(f"wrong: {kind} {file_id}: at byte ")
        elsewhere.flip(file_id)
