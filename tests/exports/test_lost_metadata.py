"""A commit that was brought to the destination, or tried there, is gone from the source; or its metadata is."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from core.errors import NotFound
from core.types import Commit
from exports.api.serializers import run_json
from exports.models import Export, ExportRun
from exports.services.exports import export_repair
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
    del life.s3.buckets["src"][f"lake/_lakefs/{metarange(life, commit)}"]


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


@pytest.mark.parametrize("lose", [its_record, its_metarange])
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
    assert f"{base[:8]} gone from the source: compared instead" in steps_of(run)[0].note
    assert "nobody knows any more what was brought with" in caplog.text


@pytest.mark.parametrize("lose", [its_record, its_metarange])
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


def test_a_range_of_the_base_that_is_gone_is_told_and_a_repair_goes_on_without_it(life: Soak) -> None:
    base = life.lake.commit(files={"a": b"1", "gone": b"3"})
    life.set()
    life.rounds()
    ranges = {key for key in life.s3.buckets["src"] if "/_lakefs/" in key and not key.endswith(metarange(life, base))}
    life.lake.commit(files={"b": b"2", "gone": None})
    for key in ranges:
        del life.s3.buckets["src"][key]
    life.rounds(9)
    failed, why = state()
    assert (failed, "NoSuchKey" in why) == ("export-failed", True)
    export_repair(actor=life.owner, export=Export.objects.get())
    life.rounds()
    assert state() == ("exported-successfully", "")
    assert there(life) == {"a": b"1", "b": b"2", "gone": b"3"}
    assert ExportRun.objects.latest("pk").lost == [base]


def test_a_head_that_is_gone_is_a_failure_that_says_so(life: Soak) -> None:
    head = life.lake.commit(files={"a": b"1"})
    life.set()
    its_metarange(life, head)
    life.rounds()
    failed, why = state()
    assert (failed, "the commit's metadata is gone from the source" in why) == ("export-failed", True)
