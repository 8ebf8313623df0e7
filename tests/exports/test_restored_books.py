"""The database comes back from a backup that is older than the destination: what runs since have brought there is found
by what they told at the status path, else by the branch's line. No state calls whole what is not."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.apps import apps
from django.core import serializers
from django.db.models import F

from core.errors import Denied
from db import clock
from exports.models import Export, ExportRun
from exports.services.exports import export_pause, export_repair, export_run
from exports.status.export import export_statuses
from jobs.models import Duty
from tests.exports.memory_s3 import etag
from tests.exports.soak import FOREIGN, Soak

pytestmark = pytest.mark.django_db

AGE = timedelta(minutes=10)


class Backup:
    """The rows of exports and duties as they were, ten minutes ago."""

    def __init__(self) -> None:
        models = [model for app in ("exports", "jobs") for model in apps.get_app_config(app).get_models()]
        self.rows = [serializers.serialize("python", model._base_manager.all()) for model in models]

    def restore(self) -> None:
        Export.objects.all().delete()
        Duty.objects.all().delete()
        for rows in self.rows:
            for row in serializers.deserialize("python", rows):
                row.save()
        Export.objects.update(head_at=F("head_at") - AGE, writes_until=None)


def differing(life: Soak, commit: str) -> list[str]:
    """Keys at the destination that are not as a commit has them, without what others put there."""
    wanted = {f"latest/{path.decode()}": entry.etag for path, entry in life.lake.trees[commit].items()}
    there = {
        key: etag(data)
        for key, data in life.s3.buckets["out"].items()
        if key.startswith("latest/") and key not in FOREIGN
    }
    return sorted(key for key in wanted.keys() | there.keys() if wanted.get(key) != there.get(key))


def exported(life: Soak, **files: bytes | None) -> str:
    made = life.lake.commit(files=files)
    life.rounds()
    assert differing(life, made) == []
    return made


def word() -> tuple[str, str]:
    (reading,) = export_statuses([Export.objects.get()], clock.now())
    return reading.told.state, reading.told.action


@pytest.mark.parametrize("status_path", ["s3://out/states", ""])
def test_what_came_and_went_since_does_not_stay(life: Soak, status_path: str) -> None:
    life.set(status_path=status_path)
    exported(life, a=b"1", b=b"1")
    backup = Backup()
    exported(life, a=b"2", c=b"2")
    backup.restore()
    back = life.lake.commit(files={"a": b"1", "c": None, "d": b"3"})
    life.rounds()
    assert Export.objects.get().last_success_ref == back and differing(life, back) == []


def test_a_branch_that_is_where_the_books_had_left_it_is_exported_again(life: Soak) -> None:
    life.set()
    first = exported(life, a=b"1")
    backup = Backup()
    exported(life, a=b"2", c=b"2")
    life.lake.repository.branches["main"] = first
    backup.restore()
    life.rounds()
    assert differing(life, first) == [] and word()[0] == "up_to_date"


def test_a_branch_that_was_moved_to_another_line_has_all_its_files_compared(life: Soak) -> None:
    """Without a status path nobody knows what was brought: what the branch has is right, nothing else goes."""
    first = life.lake.commit(files={"a": b"1", "b": b"1"})
    life.set(status_path="")
    life.rounds()
    exported(life, a=b"2")
    backup = Backup()
    life.lake.repository.branches["main"] = first
    exported(life, b=b"3", c=b"3")
    life.lake.repository.branches["main"] = first
    backup.restore()
    life.rounds()
    assert differing(life, first) == ["latest/c"]


def test_one_that_is_exported_once_is_unknown_until_somebody_runs_it(life: Soak) -> None:
    export = life.set(continuous=False)
    first = exported(life, a=b"1")
    backup = Backup()
    life.lake.commit(files={"a": b"2", "c": b"2"})
    export_run(actor=life.owner, export=Export.objects.get())
    life.rounds()
    life.lake.repository.branches["main"] = first
    backup.restore()
    life.rounds()
    assert word() == ("unknown", "run") and differing(life, first)
    export_run(actor=life.owner, export=export)
    life.rounds()
    assert differing(life, first) == [] and word()[0] == "up_to_date"


def test_who_asks_for_a_run_first_has_what_was_brought_since_looked_at(life: Soak) -> None:
    life.set()
    first = exported(life, a=b"1")
    backup = Backup()
    exported(life, a=b"2", c=b"2")
    life.lake.repository.branches["main"] = first
    backup.restore()
    export_run(actor=life.owner, export=Export.objects.get())
    life.rounds()
    assert differing(life, first) == []


def test_a_run_that_later_ones_have_followed_does_not_go_on(life: Soak) -> None:
    life.set()
    exported(life, a=b"1", b=b"1")
    life.lake.commit(files={"a": b"2"})
    life.rounds(1)
    backup, second = Backup(), life.lake.repository.branches["main"]
    assert ExportRun.objects.filter(ended_at=None).exists()
    life.rounds()
    exported(life, a=b"3", b=b"3", c=b"3")
    life.lake.repository.branches["main"] = second
    backup.restore()
    life.rounds()
    assert word() == ("failed", "repair") and "older backup" in Export.objects.get().error
    export_repair(actor=life.owner, export=Export.objects.get())
    life.rounds()
    assert differing(life, second) == [] and word()[0] == "up_to_date"


def test_a_run_that_was_the_last_one_goes_on(life: Soak) -> None:
    life.set()
    life.lake.commit(files={"a": b"1"})
    life.rounds(1)
    backup, head = Backup(), life.lake.repository.branches["main"]
    life.rounds()
    backup.restore()
    life.rounds()
    assert differing(life, head) == [] and ExportRun.objects.get().outcome == "exported-successfully"


def test_after_a_pause_in_which_nothing_came_nothing_is_done(life: Soak) -> None:
    life.set()
    exported(life, a=b"1")
    export_pause(actor=life.owner, export=Export.objects.get(), paused=True)
    Export.objects.update(head_at=F("head_at") - AGE)
    export_pause(actor=life.owner, export=Export.objects.get(), paused=False)
    life.rounds()
    assert ExportRun.objects.count() == 1 and word()[0] == "up_to_date"


def test_states_of_other_exports_and_what_is_none_tell_nothing(life: Soak) -> None:
    life.set()
    exported(life, a=b"1")
    [mine] = [key for key in life.s3.buckets["out"] if "_STATUS_" in key]
    text, later = life.s3.buckets["out"][mine], mine.replace("_STATUS_2", "_STATUS_9")
    for number, one in enumerate([b"", b"[]", b"\xff", b"{}", text.replace(b"latest", b"other"), text]):
        life.s3.buckets["out"][later.replace(".json", f"{number}.json")] = one
    Export.objects.update(head_at=F("head_at") - AGE)
    life.rounds()
    assert Export.objects.get().attempted == [] and ExportRun.objects.count() == 1


def test_a_key_that_may_not_read_states_is_no_failure(life: Soak, monkeypatch: pytest.MonkeyPatch) -> None:
    life.set()
    exported(life, a=b"1")
    Export.objects.update(head_at=F("head_at") - AGE)
    monkeypatch.setattr(life.s3, "page", lambda *_: (_ for _ in ()).throw(Denied("403")))
    life.rounds()
    assert word()[0] == "up_to_date"
