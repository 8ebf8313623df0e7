"""What may go wrong with an export, what is said of it, and that it goes on once that is put right."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from django.utils import timezone

from adapters.s3.multipart import Upload, Uploads
from core.errors import Conflict, Denied
from deployment import config
from exports.engine import advance, verify
from exports.models import Export, ExportVerification
from exports.services.exports import export_delete, export_repair, find_export
from exports.status.export import export_statuses
from jobs import duties
from jobs.models import Duty
from spark_jobs.check.settings import StoreLocation
from spark_jobs.export.settings import ExportSettings
from spark_jobs.export.tally import COPY_COLUMNS
from spark_jobs.export.unit_tasks import run_task
from tests.exports.soak import Soak
from tests.exports.test_places import at

pytestmark = pytest.mark.django_db
SOME = {"a": b"1", "d1/a": b"2", "d1/e1/a": b"3", "d2/a": b"4", "d2/b c": b"5"}


def ended(life: Soak) -> tuple[str, str]:
    life.rounds(advance.TRIES + 2)
    export = Export.objects.get()
    assert life.watcher.problems == []
    return export.state, export.error


def repaired(life: Soak) -> None:
    export_repair(actor=life.owner, export=Export.objects.get())
    assert ended(life) == ("exported-successfully", "")


def copies(life: Soak) -> int:
    return life.s3.asked["COPY"]


@pytest.mark.parametrize("instead", ["s3://out/told", ""])
def test_a_status_path_that_can_not_be_written_is_replaced_and_the_export_repaired(life: Soak, instead: str) -> None:
    life.lake.commit(files=SOME)
    life.set()
    life.denied = "states"
    assert ended(life)[0] == "export-failed"
    life.set(status_path=instead)
    export_repair(actor=life.owner, export=Export.objects.get())
    life.rounds()
    assert (Export.objects.get().state, copies(life)) == ("exported-successfully", len(SOME))


def test_that_a_repair_can_not_be_told_does_not_keep_the_export_from_going_on(life: Soak) -> None:
    head = life.lake.commit(files=SOME)
    life.set()
    life.denied = "latest/d2/a"
    assert ended(life)[0] == "export-failed"
    life.denied = f"states/lake-main-{head}"
    life.lake.commit(files={"b": b"1"})
    repaired(life)


def test_a_store_that_stays_full_is_told_after_some_tries_and_repaired(life: Soak) -> None:
    life.lake.commit(files=SOME)
    life.set()
    life.rounds(2)
    life.lake.commit(files={"a": b"other", "new": b"6"})
    life.full = True
    life.rounds(advance.TRIES)  # the first one begins the run
    told = export_statuses([Export.objects.get()], timezone.now())[0].told
    assert (told.word, "507" in str(told.sentence)) == ("Retrying", True)
    state, why = ended(life)
    assert state == "export-failed"
    assert "answered 507 InsufficientStorage to put" in why and "Free space there, then click Repair" in why
    life.full = False
    repaired(life)


def test_a_permission_that_is_revoked_half_way_is_named_and_only_the_rest_is_copied_later(life: Soak) -> None:
    life.lake.commit(files=SOME)
    life.set(patterns=[".*"])

    def revoke(method: str, bucket: str, key: str) -> None:
        life.denied = "d2" if method == "COPY" else life.denied

    life.s3.after = revoke
    state, why = ended(life)
    assert (state, "Grant this access key the missing permission, then click Repair" in why) == ("export-failed", True)
    assert "2 tasks failed" in why
    life.denied, life.s3.after = "", life._after
    before = copies(life)
    repaired(life)
    assert copies(life) - before == 2


def test_what_garbage_collection_took_is_named_with_what_to_do(life: Soak) -> None:
    head = life.lake.commit(files=SOME)
    key = f"lake/{life.lake.address_of(head, 'd2/a')}"
    life.collected[key] = life.s3.buckets["src"].pop(key)
    life.set()
    state, why = ended(life)
    assert state == "export-failed"
    assert f"s3://src/{key} is missing at the source" in why
    assert "Restore the object, or delete the file from the branch, then click Repair" in why
    life.s3.buckets["src"] |= life.collected
    repaired(life)


def test_a_branch_that_is_deleted_meanwhile_is_exported_to_its_end_and_then_needs_somebody(life: Soak) -> None:
    head = life.lake.commit(files=SOME)
    life.set()
    life.rounds(1)
    life.unbranch()
    life.rounds(2)
    export = Export.objects.get()
    assert (export.state, export.last_success_ref) == ("exported-successfully", head)
    told = export_statuses([export], timezone.now())[0].told
    assert (told.word, told.action, told.state.tone) == ("Branch deleted", "delete", "bad")
    assert str(told.sentence).startswith("Branch deleted at source, seen ")
    assert "delete this export, or export another branch instead" in str(told.sentence) and head[:8] in str(
        told.sentence
    )


def test_a_branch_that_is_deleted_is_looked_for_once_a_minute_and_fails_nothing(life: Soak) -> None:
    life.lake.commit(files=SOME)
    life.set()
    life.rounds(1)
    life.unbranch()
    life.rounds(2)
    export = Export.objects.get()
    since, looked = export.gone_since, export.gone_looked_at
    life.rounds(3)
    duty, export = Duty.objects.get(kind="export"), Export.objects.get()
    assert (duty.failures, duty.outcome) == (
        0,
        "Branch deleted at source: delete this export, or export another branch",
    )
    assert (export.gone, export.gone_since, export.gone_looked_at) == ("branch", since, looked)
    Export.objects.update(gone_looked_at=looked - timedelta(minutes=2))
    life.rounds(1)
    export = Export.objects.get()
    assert export.gone_looked_at > looked and export.gone_since == since
    life.commit()
    Export.objects.update(gone_looked_at=looked - timedelta(minutes=2))
    life.rounds(2)
    export = Export.objects.get()
    assert (export.gone, export.gone_since) == ("", None)
    assert ended(life)[0] == "exported-successfully"


def test_of_two_repairs_at_once_one_repairs(life: Soak) -> None:
    life.lake.commit(files=SOME)
    life.denied = "d2"
    life.set()
    ended(life)
    one, other = Export.objects.get(), Export.objects.get()
    export_repair(actor=life.owner, export=one)
    with pytest.raises(Conflict, match="nothing to repair: the export is export-repaired"):
        export_repair(actor=life.owner, export=other)
    assert Export.objects.get().state == "export-repaired"


@pytest.mark.parametrize("pattern", ["", "^$"])
def test_an_expression_that_matches_the_root_ends_with_its_marker(life: Soak, pattern: str) -> None:
    life.lake.commit(files={"a": b"1", "d1/a": b"2"})
    life.set(patterns=[pattern])
    assert ended(life)[0] == "exported-successfully"
    markers = {"_lakefs_success", *(["d1/_lakefs_success"] if not pattern else [])}
    assert at(life) == {"a", "d1/a", *markers}


def test_a_users_own_success_file_stays_until_the_branch_changes_it(life: Soak) -> None:
    life.lake.commit(files={"d1/a": b"1", "d1/_lakefs_success": b"by a user"})
    life.set(patterns=[r"d\d/"])
    life.rounds()
    life.lake.commit(files={"d1/a": b"2"})
    life.rounds()
    assert life.s3.buckets["out"]["latest/d1/_lakefs_success"] == b"by a user"
    life.lake.commit(files={"d1/_lakefs_success": None})
    assert ended(life)[0] == "exported-successfully"
    assert life.s3.buckets["out"]["latest/d1/_lakefs_success"] == b""  # a marker of ours


def test_a_worker_that_dies_again_and_again_copies_nothing_twice_but_what_it_was_at(life: Soak) -> None:
    files = {f"{top}{number}": b"%d" % number for top in ("", "d1/", "d2/") for number in range(10)}
    life.lake.commit(files=files)
    life.set(patterns=[".*"])
    life.rounds(1)
    kills = 4
    for _ in range(kills):
        life.kill_in = 6
        life.work()
    life.kill_in = 0
    assert ended(life)[0] == "exported-successfully"
    written = Counter(key for method, key in life.log if method == "COPY")
    assert set(written) == {f"latest/{key}" for key in files}
    assert sum(written.values()) <= len(files) + kills
    assert Export.objects.get().runs.count() == 1


# --- uploads that nobody will finish ----------------------------------------------------------------------------------


@pytest.fixture
def aborted(life: Soak, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Uploads are under way to `a` and to a key that is none of the branch's; gives those that were aborted."""
    gone: set[str] = set()

    def unfinished(self: Uploads, prefix_uri: str) -> Iterator[Upload]:
        prefix = prefix_uri.removeprefix("s3://out/")
        return iter([Upload(f"{prefix}a", "1"), Upload(f"{prefix}theirs", "2")])

    monkeypatch.setattr(Uploads, "unfinished", unfinished)
    monkeypatch.setattr(Uploads, "abort", lambda self, uri, upload_id: gone.add(uri))
    return gone


def test_unfinished_uploads_of_a_commit_that_was_given_up_are_aborted(life: Soak, aborted: set[str]) -> None:
    first = life.lake.commit(files={"b": b"1"})
    life.set()
    life.rounds()
    life.lake.commit(files={"a": b"large", "ü": b"2"})
    life.denied = "ü"
    life.rounds()
    assert aborted == set()  # a repair may go on with them
    life.lake.repository.branches["main"], life.denied = first, ""
    repaired(life)
    assert aborted == {"s3://out/latest/a"}


def test_unfinished_uploads_at_a_place_that_is_left_are_aborted(life: Soak, aborted: set[str]) -> None:
    life.lake.commit(files={"a": b"1"})
    life.set()
    life.rounds()
    life.set("s3://out/other")
    life.rounds()
    assert aborted == {"s3://out/latest/a"}


def test_unfinished_uploads_of_an_export_that_is_deleted_are_aborted(life: Soak, aborted: set[str]) -> None:
    life.lake.commit(files={"a": b"1"})
    life.set()
    life.rounds(1)
    export_delete(actor=life.owner, export=Export.objects.get())
    life.rounds(1)
    assert (aborted, Export.objects.exists()) == ({"s3://out/latest/a"}, False)


# --- verifications, Spark ---------------------------------------------------------------------------------------------


def test_a_verification_whose_worker_dies_each_time_ends(life: Soak, monkeypatch: pytest.MonkeyPatch) -> None:
    life.lake.commit(files={"a": b"1"})
    life.set()
    life.rounds()
    life.verify()

    def die(*_: Any) -> None:
        life.dead = True
        life._before("LIST", "out", "")

    monkeypatch.setattr(verify, "_slice", die)
    life.rounds(verify.MOST_TAKEOVERS + 2)
    found = ExportVerification.objects.get()
    assert (found.outcome, "its worker was lost 6 times in a row" in found.error) == ("failed", True)


def test_a_refused_task_of_spark_does_not_promise_that_it_goes_on_by_itself() -> None:
    def refused(*_: object) -> Iterator[pa.RecordBatch]:
        raise Denied("403 AccessDenied", hint="continues by itself")
        yield

    place = StoreLocation("s3://src/lake", "us-east-1")
    (batch,) = run_task([], refused, COPY_COLUMNS, ExportSettings(place, place))
    (row,) = batch.to_pylist()
    assert row["reason"] == "Denied" and "by itself" not in row["detail"]
    assert row["detail"].startswith("403 AccessDenied. Executors take keys from LAKEMIRROR_STORE_US_EAST_1_ACCESS_KEY")


# --- without a mirror -------------------------------------------------------------------------------------------------


def due(life: Soak) -> list[int]:
    """What the clock sends, or has sent already, worked on."""
    Duty.objects.update(woken_at=None)
    sent = [pk for pk, _ in Duty.objects.filter(kind="export").to_send()]
    for pk in sent:
        duties.run(pk, holder="worker-1")
    return sent


def work_what_is_due(life: Soak) -> None:
    """Until nothing is; what is due at once is so in the next millisecond."""
    while due(life) or time.sleep(0.005) or due(life):
        pass


def settle(life: Soak) -> None:
    life.set()
    work_what_is_due(life)
    assert Export.objects.get().state == "exported-successfully"


def test_a_webhook_has_a_branch_exported_that_nobody_mirrors(
    life: Soak, django_capture_on_commit_callbacks: Any
) -> None:
    life.lake.commit(files={"a": b"1"})
    settle(life)
    head = life.lake.commit(files={"a": b"2"})
    assert due(life) == []
    with django_capture_on_commit_callbacks(execute=True):
        assert duties.repository_changed("us-east-1", "lake")
        assert not duties.repository_changed("us-east-1", "other")
    work_what_is_due(life)
    assert find_export("us-east-1", "lake", "main").last_success_ref == head


def test_without_a_webhook_the_branch_is_looked_at_in_its_interval(life: Soak) -> None:
    life.lake.commit(files={"a": b"1"})
    settle(life)
    head = life.lake.commit(files={"a": b"2"})
    duty = Duty.objects.get(kind="export")
    interval = config.current().commit_sensor.process_branches_duration
    assert timedelta() < duty.due_at - timezone.now() <= interval
    Duty.objects.update(due_at=timezone.now() - timedelta(seconds=1))
    work_what_is_due(life)
    assert find_export("us-east-1", "lake", "main").last_success_ref == head


def test_a_key_that_may_not_list_is_told_so_before_a_first_run_writes_anything(life: Soak) -> None:
    life.lake.commit(files=SOME)
    known = life.s3.before

    def before(method: str, bucket: str, key: str) -> None:
        known(method, bucket, key)
        if method == "LIST" and bucket == "out":
            raise Denied("403 AccessDenied")

    life.s3.before = before
    life.set()
    state, error = ended(life)
    assert state == "export-failed"
    assert error.startswith(
        "the key may not list s3://out/latest (s3:ListBucket), which a first run needs to see what is there"
    )
    assert not any(key.startswith("latest/") for _, key in life.log)
    life.s3.before = known
    repaired(life)
