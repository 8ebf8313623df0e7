"""A commit that was brought to the destination, or tried there, is gone from the source; or its metadata is."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from adapters.disk_cache import LocalCache
from core.errors import NotFound
from core.types import Commit
from exports.api.serializers import run_json
from exports.models import Export, ExportRun
from exports.services.exports import export_delete, export_repair
from exports.status.timeline import steps_of
from tests.exports.soak import Soak

pytestmark = pytest.mark.django_db
Lose = Callable[[Soak, str], None]


def its_record(life: Soak, commit: str) -> None:
    known = life.lm.us.get_commit

    def get_commit(repository: str, commit_id: str) -> Commit:
        if commit_id == commit:
            raise NotFound("commit not found")
        return known(repository, commit_id)

    life.lm.us.get_commit = get_commit  # type: ignore[method-assign]


def its_metarange(life: Soak, commit: str) -> None:
    del life.s3.buckets["src"][metarange_file(life, commit)]


def damage_of_its_metarange(life: Soak, commit: str) -> None:
    life.s3.buckets["src"][metarange_file(life, commit)] = b"junk"


def its_range(life: Soak, commit: str) -> None:
    del life.s3.buckets["src"][range_of(life, commit)]


def damage_of_its_range(life: Soak, commit: str) -> None:
    life.s3.buckets["src"][range_of(life, commit)] = b"junk"


WAYS = [its_record, its_metarange, damage_of_its_metarange, its_range, damage_of_its_range]


def range_of(life: Soak, commit: str) -> str:
    (ref,) = life.lake.ranges[metarange(life, commit)]
    return f"lake/_lakefs/{ref.id}"


def metarange_file(life: Soak, commit: str) -> str:
    return f"lake/_lakefs/{metarange(life, commit)}"


def metarange(life: Soak, commit: str) -> str:
    return str(life.lake.repository.commits[commit].metarange_id)


class NothingKept:
    """The files of a worker that has never read anything."""

    def get(self, file_id: str) -> None: ...
    def put(self, file_id: str, data: bytes) -> None: ...


@pytest.fixture(autouse=True)
def never_read(life: Soak, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deployment.wiring.clients.local_cache", NothingKept)


def there(life: Soak) -> dict[str, bytes]:
    held = {key.removeprefix("latest/"): data for key, data in life.s3.buckets["out"].items() if "latest/" in key}
    return {key: data for key, data in held.items() if key in ("a", "b", "c", "gone")}


def state() -> tuple[str, str]:
    export = Export.objects.get()
    return export.state, export.error


@pytest.mark.parametrize("lose", WAYS)
def test_without_its_base_a_run_compares_and_says_so(life: Soak, lose: Lose, caplog: pytest.LogCaptureFixture) -> None:
    base = life.lake.commit(files={"a": b"1", "b": b"2", "gone": b"3"})
    life.set()
    life.rounds()
    life.lake.commit(files={"b": b"other", "c": b"4", "gone": None})
    lose(life, base)
    copies = life.s3.asked["COPY"]
    with caplog.at_level(logging.WARNING, "lakemirror.export"):
        life.rounds()
    run = ExportRun.objects.latest("pk")
    assert state() == ("exported-successfully", "")
    # Nobody knows any more that `gone` was brought by us: it stays.
    assert there(life) == {"a": b"1", "b": b"other", "c": b"4", "gone": b"3"}
    assert life.s3.asked["COPY"] - copies == 2
    assert (run_json(run)["lost_commits"], run.base) == ([base], "")
    assert f"{base[:8]} missing at the source: compared instead" in steps_of(run)[0].note
    assert "nobody knows any more what was brought with" in caplog.text


@pytest.mark.parametrize("lose", WAYS)
def test_without_an_attempt_a_repair_goes_on_from_the_base(life: Soak, lose: Lose) -> None:
    life.lake.commit(files={"a": b"1", "gone": b"3"})
    life.set()
    life.rounds()
    tried = life.lake.commit(files={"c": b"4", "ü": b"5"})
    life.denied = "ü"
    life.rounds()
    assert (state()[0], "c" in there(life)) == ("export-failed", True)
    life.denied = ""
    life.lake.commit(files={"b": b"6", "c": None, "ü": None, "gone": None})
    lose(life, tried)
    export_repair(actor=life.owner, export=Export.objects.get())
    life.rounds()
    assert state() == ("exported-successfully", "")
    assert there(life) == {"a": b"1", "b": b"6", "c": b"4"}
    assert ExportRun.objects.latest("pk").lost == [tried]


@pytest.mark.parametrize("file", [metarange_file, range_of])
def test_damage_of_the_head_is_told_and_mended_by_restoring_it(
    life: Soak, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: Callable[[Soak, str], str]
) -> None:
    """What is damaged is not kept on the local disk."""
    monkeypatch.setattr("deployment.wiring.clients.local_cache", lambda: LocalCache(tmp_path, 1 << 20))
    head = life.lake.commit(files={"a": b"1"})
    life.set()
    damaged = file(life, head)
    whole = life.s3.buckets["src"][damaged]
    life.s3.buckets["src"][damaged] = whole[: len(whole) // 2]
    life.rounds()
    failed, why = state()
    assert failed == "export-failed" and damaged in why
    life.s3.buckets["src"][damaged] = whole
    export_repair(actor=life.owner, export=Export.objects.get())
    life.rounds()
    assert state() == ("exported-successfully", "")


def test_damage_on_the_local_disk_is_fetched_again(life: Soak, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    disk = LocalCache(tmp_path, 1 << 20)
    monkeypatch.setattr("deployment.wiring.clients.local_cache", lambda: disk)
    head = life.lake.commit(files={"a": b"1"})
    disk.put(metarange(life, head), b"junk")
    life.set()
    life.rounds()
    assert state() == ("exported-successfully", "")
    assert disk.get(metarange(life, head)) == life.s3.buckets["src"][metarange_file(life, head)]


def test_an_export_whose_commit_is_damaged_can_be_deleted(life: Soak, monkeypatch: pytest.MonkeyPatch) -> None:
    head = life.lake.commit(files={"a": b"1"})
    life.set()
    damage_of_its_metarange(life, head)
    life.rounds()
    monkeypatch.setattr("exports.engine.run_io.Plane.unfinished", lambda self: {b"a": ["1"]})
    export_delete(actor=life.owner, export=Export.objects.get())
    life.rounds()
    assert not Export.objects.exists()


def test_a_head_that_is_gone_is_a_failure_that_says_so(life: Soak) -> None:
    head = life.lake.commit(files={"a": b"1"})
    life.set()
    its_metarange(life, head)
    life.rounds()
    failed, why = state()
    assert (failed, "the commit's metadata is gone at the source" in why) == ("export-failed", True)
