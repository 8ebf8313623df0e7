"""Writes that got no answer, and that the store carries out all the same, when nobody waits for them any more."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from adapters.s3.writes import Writer
from core.errors import Denied, Full, Invalid, LakeMirrorError, NotSent, RemoteFailure, Throttled, Unreachable
from core.exporting.deadline import Deadline
from db import clock
from exports.engine import advance
from exports.engine.time_slice import MARGIN_SECONDS, Slice
from exports.models import Export, ExportRun
from exports.services.exports import export_repair, export_run
from jobs import duties
from jobs.models import Duty
from tests.exports.memory_s3 import MemoryS3
from tests.exports.soak import Soak
from tests.exports.test_plane import FreeLease, an_export

pytestmark = pytest.mark.django_db


def out(life: Soak, key: str) -> bytes | None:
    return life.s3.buckets["out"].get(f"latest/{key}")


def unanswered(life: Soak, chosen: Callable[[str, str], bool], times: int = 1) -> None:
    """So many of the writes that are chosen by method and key get no answer."""
    known, left = life.s3.before, [times]

    def before(method: str, bucket: str, key: str) -> None:
        known(method, bucket, key)
        if bucket == "out" and method in ("PUT", "COPY", "DELETE", "DELETES") and chosen(method, key) and left[0]:
            left[0] -= 1
            raise Unreachable("no answer within 60 s")

    life.s3.before = before


def at_once(life: Soak, rounds: int = 6) -> list[str]:
    """Duties run, and no time goes by; what they said."""
    told = []
    for _ in range(rounds):
        for duty in Duty.objects.filter(kind="export"):
            Duty.objects.filter(pk=duty.pk).update(due_at=clock.now() - timedelta(seconds=1), until=None, holder="")
            told.append(duties.run(duty.pk, holder="worker-1"))
    return told


def state() -> str:
    return Export.objects.get().state


def test_a_run_waits_for_a_copy_of_the_one_before_that_nobody_answered(life: Soak) -> None:
    life.lake.commit(files={"k": b"old"})
    life.set()
    unanswered(life, lambda method, key: key == "latest/k")
    at_once(life)
    export = Export.objects.get()
    assert (export.state, out(life, "k")) == ("exported-successfully", b"old")  # it was repeated
    assert export.writes_until is not None
    assert export.writes_until - clock.now() > timedelta(seconds=MARGIN_SECONDS - 10)
    life.lake.commit(files={"k": b"new"})
    told = at_once(life)
    assert (state(), out(life, "k")) == ("in-progress", b"old")
    assert told[-1] == "waiting for writes of a lost worker, or writes without an answer"
    life.carry_out()
    life.rounds(3)
    assert (state(), out(life, "k"), life.s3.given_up) == ("exported-successfully", b"new", [])


def test_one_that_is_started_by_hand_waits_as_well(life: Soak) -> None:
    life.lake.commit(files={"k": b"old"})
    life.set(continuous=False)
    unanswered(life, lambda method, key: key == "latest/k")
    at_once(life)
    life.lake.commit(files={"k": None})
    export_run(actor=life.owner, export=Export.objects.get())
    at_once(life)
    assert (state(), out(life, "k")) == ("in-progress", b"old")
    life.carry_out()
    life.rounds(3)
    assert (state(), out(life, "k")) == ("exported-successfully", None)


def test_a_manifest_that_nobody_answered_is_waited_for_too(life: Soak) -> None:
    """Who is given its status path would find it there later."""
    life.lake.commit(files={"k": b"1"})
    life.set()
    unanswered(life, lambda method, key: "_MANIFEST_" in key, times=10_000)
    at_once(life, advance.TRIES + 1)
    export = Export.objects.get()
    assert state() == "export-failed"
    assert export.writes_until is not None
    assert export.writes_until - clock.now() > timedelta(seconds=MARGIN_SECONDS - 10)


def test_where_all_was_answered_nothing_waits(life: Soak) -> None:
    life.lake.commit(files={"k": b"old"})
    life.set(patterns=[""])
    at_once(life)
    life.lake.commit(files={"k": b"new"})
    at_once(life)
    assert (Export.objects.get().writes_until, out(life, "k"), state()) == (None, b"new", "exported-successfully")


def test_a_removal_of_a_last_key_is_waited_for_before_the_key_is_written_again(life: Soak) -> None:
    life.lake.commit(files={"d/x": b"1", "d/_SUCCESS": b"1"})
    life.set(patterns=[r".*/_SUCCESS"])
    at_once(life)
    life.lake.commit(files={"d/x": b"2", "d/_SUCCESS": b"2"})
    unanswered(life, lambda method, key: method == "DELETES")
    at_once(life)
    assert (ExportRun.objects.latest("pk").phase, out(life, "d/x"), out(life, "d/_SUCCESS")) == ("clear", b"1", None)
    life.carry_out()
    life.rounds(3)
    assert (state(), out(life, "d/x"), out(life, "d/_SUCCESS")) == ("exported-successfully", b"2", b"2")


def test_a_removal_of_a_marker_is_waited_for_before_it_is_written_again(life: Soak) -> None:
    life.lake.commit(files={"d/x": b"1"})
    life.set(patterns=["d/"])
    at_once(life)
    life.lake.commit(files={"d/x": b"2"})
    unanswered(life, lambda method, key: method == "DELETES")
    at_once(life)
    assert (state(), out(life, "d/x"), out(life, "d/_lakefs_success")) == ("in-progress", b"1", None)
    life.carry_out()
    life.rounds(3)
    assert (state(), out(life, "d/_lakefs_success")) == ("exported-successfully", b"")


def test_a_marker_that_nobody_answered_is_waited_for_before_the_next_run_takes_it_away(life: Soak) -> None:
    life.lake.commit(files={"d/x": b"1"})
    life.set(patterns=["d/"])
    unanswered(life, lambda method, key: key.endswith("d/_lakefs_success"))
    at_once(life)
    assert state() == "exported-successfully"
    life.lake.commit(files={"d/x": b"2"})
    at_once(life)
    assert (state(), out(life, "d/x")) == ("in-progress", b"1")


def test_a_phase_goes_on_at_once_and_is_tried_so_often_and_no_more(life: Soak) -> None:
    """It only writes the same again. If it waited, nobody would count how often it failed."""
    life.lake.commit(files={"k": b"old", "l": b"1"})
    life.set()
    unanswered(life, lambda method, key: key == "latest/k", times=10_000)
    told = at_once(life, advance.TRIES + 1)
    assert (state(), out(life, "l")) == ("export-failed", b"1")
    assert not [one for one in told if one.startswith("waits")]
    assert ExportRun.objects.get().compare  # nobody knows whether it is there


def test_a_repair_waits_though_a_status_file_was_written_since(life: Soak) -> None:
    """The status of the failure is written in a slice of its own, which does not make the wait any shorter."""
    life.lake.commit(files={"k": b"old"})
    life.set()
    unanswered(life, lambda method, key: key == "latest/k", times=10_000)
    at_once(life, advance.TRIES + 1)
    export = Export.objects.get()
    assert (state(), export.writes_until is not None) == ("export-failed", True)
    life.lake.commit(files={"k": b"new"})
    export_repair(actor=life.owner, export=export)
    life.s3.before = lambda method, bucket, key: None
    assert at_once(life)[-1] == "waiting for the last writes of the previous run"
    assert out(life, "k") is None
    life.carry_out()
    life.rounds()
    assert (state(), out(life, "k")) == ("exported-successfully", b"new")


def test_that_it_failed_is_not_told_before_a_late_status_that_says_otherwise(life: Soak) -> None:
    head = life.lake.commit(files={"k": b"1"})
    status = f"states/lake-main-{head}"
    life.set()
    unanswered(life, lambda method, key: key == status, times=10_000)
    told = at_once(life, advance.TRIES + 3)
    assert (state(), life.s3.buckets["out"].get(status)) == ("in-progress", None)
    assert "has failed, and waits for a status file that got no answer" in told
    life.s3.before = lambda method, bucket, key: None
    life.carry_out()
    assert life.s3.buckets["out"][status].startswith(b"status: exported-successfully")
    life.rounds()
    assert (state(), life.s3.buckets["out"][status]) == (
        "export-failed",
        b"status: export-failed, signalled_errors: 1\n",
    )
    export_repair(actor=life.owner, export=Export.objects.get())
    life.rounds()
    assert state() == "exported-successfully"


def test_an_export_that_is_deleted_goes_when_its_last_write_can_not_arrive_any_more(life: Soak) -> None:
    from exports.services.exports import export_delete

    life.lake.commit(files={"k": b"old"})
    life.set()
    unanswered(life, lambda method, key: key == "latest/k")
    at_once(life)
    export_delete(actor=life.owner, export=Export.objects.get())
    at_once(life)
    assert Export.objects.exists()
    life.rounds(1)
    assert not Export.objects.exists()


@pytest.mark.parametrize("rounds", [0, 1])
def test_a_place_and_its_status_path_are_nobody_elses_while_a_write_may_arrive_there(life: Soak, rounds: int) -> None:
    """Also where the next run has begun elsewhere, and waits for that write."""
    head = life.lake.commit(files={"k": b"old"})
    life.lake.repository.branches["dev"] = head
    life.set()
    unanswered(life, lambda method, key: key == "latest/k")
    at_once(life)
    life.set("s3://out/other", status_path="s3://out/told")
    at_once(life, rounds)
    assert Export.objects.get().runs.open().count() == rounds
    for taken in ("s3://out/latest", "s3://out/states"):
        with pytest.raises(Invalid, match=r"where a write of .* may still arrive"):
            life.set(taken, branch="dev", status_path="")
    life.carry_out()
    life.rounds()
    ExportRun.objects.update(ended_at=clock.now() - timedelta(hours=1))
    life.set("s3://out/latest", branch="dev", status_path="")


# --- what counts as unanswered ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Unreachable("no answer"), True),
        (RemoteFailure("504 from something on the way"), True),
        (NotSent("refused"), False),
        (Throttled("503 SlowDown"), False),
        (Full("507"), False),
        (Denied("403"), False),
    ],
)
def test_a_write_without_an_answer_is_told_though_it_was_repeated(error: LakeMirrorError, told: bool) -> None:
    store, failed = MemoryS3(), []

    def before(method: str, bucket: str, key: str) -> None:
        if not failed:
            failed.append(1)
            raise error

    store.before = before
    writer = Writer(store, Deadline(1e12, sleep=lambda seconds: None))
    try:
        writer.put("s3://out/k", b"1")
    except Denied:
        assert not error.retryable
    assert (writer.unanswered, "k" in store.buckets["out"]) == (told, error.retryable)


@pytest.mark.parametrize(
    ("method", "query", "told"),
    [
        ("PUT", {}, True),
        ("DELETE", {}, True),
        ("POST", {"delete": ""}, True),
        ("POST", {"uploadId": "1"}, True),
        ("POST", {"uploads": ""}, False),
        ("PUT", {"uploadId": "1", "partNumber": "1"}, False),
        ("DELETE", {"uploadId": "1"}, False),
        ("HEAD", {}, False),
        ("GET", {"uploads": ""}, False),
    ],
)
def test_only_what_others_see_counts(method: str, query: dict[str, str], told: bool) -> None:
    class Silent(MemoryS3):
        def send(self, *args: object, **more: object) -> None:
            raise Unreachable("no answer")

    writer = Writer(Silent(), Deadline(1e12, sleep=lambda seconds: None), tries=1)
    with pytest.raises(Unreachable):
        writer.write(method, "s3://out/k", query=query)
    assert writer.unanswered == told


def test_a_slice_does_not_shorten_what_an_earlier_one_left(monkeypatch: pytest.MonkeyPatch) -> None:
    export = an_export()
    first = Slice.begin(export, FreeLease())  # type: ignore[arg-type]
    first.unanswered = True
    first.end()
    export.refresh_from_db()
    left = export.writes_until
    assert left is not None and left > clock.now()
    second = Slice.begin(export, FreeLease())  # type: ignore[arg-type]
    assert second.unsettled and not second.unanswered
    second.end()
    export.refresh_from_db()
    assert export.writes_until == left
