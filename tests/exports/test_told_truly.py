"""What the page and the API say of a destination and of its status file is what stands there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps

from console.exports_summary import summary
from core.errors import Denied
from db import clock
from exports.api.status import whole_status_json
from exports.engine.verifications import begin
from exports.models import Export, ExportRun, ExportVerification
from exports.status.export import export_statuses
from exports.status.failure_counts import has_later_status, status_file
from rbac.models import User
from tests.exports.soak import Soak
from tests.exports.test_verification import drifted

pytestmark = pytest.mark.django_db

LONG_AGO = datetime.now(UTC) - timedelta(hours=5)


def told() -> dict[str, Any]:
    """As `export-status` answers."""
    (reading,) = export_statuses([Export.objects.get()], clock.now())
    return whole_status_json(reading)


def test_a_new_place_to_which_nothing_was_brought_is_not_up_to_date(life: Soak) -> None:
    life.lake.commit(files={"a": b"1"})
    life.set()
    life.rounds()
    assert told()["behind_commits"] == 0
    life.denied = "other/"
    life.set("s3://out/other")
    life.rounds()
    life.lake.commit(files={"a": b"2"})
    life.rounds()
    status = told()
    assert (status["status"], status["up_to_date"]) == ("export-failed", False)
    assert (status["behind_commits"], status["behind_seconds"]) == (None, None)


def test_a_branch_that_comes_back_while_another_commit_is_half_written_is_not_up_to_date(life: Soak) -> None:
    first = life.lake.commit(files={"a": b"1", "ü": b"1"})
    life.set()
    life.rounds()
    life.lake.commit(files={"a": b"2", "ü": b"2"})
    life.denied = "ü"
    life.rounds()
    assert told()["behind_commits"] == 1
    life.lake.repository.branches["main"] = first
    life.rounds()
    status = told()
    assert (status["up_to_date"], status["behind_commits"], status["behind_seconds"]) == (False, None, None)


@pytest.mark.parametrize("change", [{"head_at": LONG_AGO}, {"look_error": "403"}])
def test_what_nobody_has_looked_at_for_long_is_unknown(life: Soak, change: dict[str, Any]) -> None:
    life.lake.commit(files={"a": b"1"})
    life.set()
    life.rounds()
    assert (told()["state"], told()["up_to_date"], told()["behind_commits"]) == ("up_to_date", True, 0)
    Export.objects.update(**change)
    status = told()
    assert (status["state"], status["up_to_date"]) == ("unknown", None)
    assert (status["behind_commits"], status["behind_seconds"]) == (None, None)


def test_what_was_found_missing_is_not_up_to_date_until_it_is_verified_again(life: Soak) -> None:
    commit = life.lake.commit(files={"a": b"1"})
    life.set()
    life.rounds()
    export = Export.objects.get()
    rows = [{"outcome": "drifted", "foreign": 1}, {"outcome": "drifted", "missing": 1, "different": 2}]
    rows += [{"outcome": "failed"}, {"outcome": "equal"}]
    states = []
    for row in rows:
        made = {"ref": commit, "path": export.path, "started_at": clock.now(), "ended_at": clock.now()}
        ExportVerification.objects.create(export=export, **made, **row)
        states.append((told()["state"], told()["up_to_date"]))
    assert states == [("up_to_date", True), ("damaged", None), ("damaged", None), ("up_to_date", True)]


@pytest.mark.parametrize("outcome", ["failed", "outdated"])
def test_what_a_verification_found_before_it_was_broken_off_is_told(life: Soak, outcome: str) -> None:
    commit = life.lake.commit(files={"a": b"1"})
    life.set()
    life.rounds()
    export = Export.objects.get()
    made = {"ref": commit, "path": export.path, "started_at": clock.now(), "ended_at": clock.now()}
    unfound = {"failed": "not_proven", "outdated": "up_to_date"}[outcome]
    for found, state in (({}, unfound), ({"missing": 1}, "damaged"), ({}, "damaged")):
        ExportVerification.objects.create(export=export, outcome=outcome, **made, **found)
        assert told()["state"] == state
    ExportVerification.objects.create(export=export, outcome="equal", **made)
    assert told()["state"] == "up_to_date"


def test_drift_is_not_forgotten_with_old_verifications(life: Soak) -> None:
    life.lake.commit(files={"a": b"1"})
    life.set()
    life.rounds()
    export = Export.objects.get()
    drifted(export)
    for _ in range(12):
        made = begin(export, asked_by="olga")
        ExportVerification.objects.filter(pk=made.pk).update(ended_at=clock.now(), outcome="failed")
    assert told()["state"] == "damaged"
    assert ExportVerification.objects.count() == 11


def test_drift_is_told_with_its_numbers_and_needs_somebody(life: Soak) -> None:
    life.lake.commit(files={"a": b"1"})
    life.set()
    life.rounds()
    drifted(Export.objects.get())
    (reading,) = export_statuses([Export.objects.get()], clock.now())
    assert (reading.told.word, reading.needs_somebody) == ("Drifted", True)
    assert "found 1 file missing and 1 file different" in str(reading.told.sentence)
    Export.objects.update(paused=True)
    (reading,) = export_statuses([Export.objects.get()], clock.now())
    assert (reading.told.word, reading.told.action) == ("Drifted", "resume")


def test_drift_is_counted_on_the_overview(life: Soak, owner: User) -> None:
    life.lake.commit(files={"a": b"1"})
    life.set()
    life.rounds()
    assert summary(owner, clock.now(), 5).needing == 0
    drifted(Export.objects.get())
    told = summary(owner, clock.now(), 5)
    assert (told.needing, [(need.told.word, need.verb) for need in told.some]) == (1, [("Drifted", "Verify")])


def test_a_proof_of_the_former_place_proves_nothing_of_a_new_one(life: Soak) -> None:
    life.lake.commit(files={"a": b"1"})
    life.set()
    life.rounds()
    life.verify()
    life.rounds()
    assert (told()["proven"]["outcome"], told()["steps"][-1]["state"]) == ("drifted", "failed")
    life.set("s3://out/other")
    life.rounds()
    assert (told()["proven"], told()["steps"][-1]["note"]) == (None, "not verified yet")


# --- the status file --------------------------------------------------------------------------------------------------


def there(life: Soak, commit: str, states: str = "states") -> str:
    """What the status file of a commit says."""
    return life.s3.buckets["out"][f"{states}/lake-main-{commit}"].decode()


def shown(run: ExportRun | None = None) -> str:
    """What the page and the API say that it says."""
    found = status_file(run or ExportRun.objects.latest("pk"))
    return found.text if found else ""


def test_a_repair_is_not_told_before_the_status_file_says_so(life: Soak) -> None:
    head = life.lake.commit(files={"a": b"1"})
    life.set()
    life.denied = "latest/a"
    life.rounds()
    assert shown() == there(life, head) == "status: export-failed, signalled_errors: 1\n"
    life.pause()
    life.repair()
    life.rounds()
    assert shown() == there(life, head) == "status: export-failed, signalled_errors: 1\n"
    life.pause()
    life.rounds(1)
    assert (
        shown(ExportRun.objects.earliest("pk")) == there(life, head) == "status: export-repaired, signalled_errors: 1\n"
    )


def test_a_status_file_that_a_later_run_has_written_is_not_shown_as_an_earlier_ones(life: Soak) -> None:
    head = life.lake.commit(files={"a": b"1"})
    life.set()
    life.rounds()
    assert shown() == there(life, head) == "status: exported-successfully, signalled_errors: 0\n"
    life.denied = "other/"
    life.set("s3://out/other")
    life.rounds()
    first, last = ExportRun.objects.earliest("pk"), ExportRun.objects.latest("pk")
    assert (shown(first), has_later_status(first), has_later_status(last)) == ("", True, False)
    assert shown() == there(life, head) == "status: export-failed, signalled_errors: 1\n"


def test_a_status_file_of_which_the_last_write_failed_is_not_shown(life: Soak) -> None:
    head = life.lake.commit(files={"a": b"1"})
    life.set()
    life.denied = "latest/a"
    life.rounds()
    life.repair()
    life.denied = f"states/lake-main-{head}"
    life.rounds()
    assert (shown(), there(life, head)) == ("", "status: export-failed, signalled_errors: 1\n")


@pytest.mark.parametrize("readable", [True, False])
def test_a_commit_is_not_called_exported_while_its_files_are_written_over_another_ones(
    life: Soak, readable: bool
) -> None:
    first = life.lake.commit(files={"a": b"1", "b": b"1"})
    life.set()
    life.rounds()
    life.lake.commit(files={"a": b"2", "b": b"2"})
    life.rounds()
    life.lake.repository.branches["main"] = first
    seen: dict[str, str] = {}
    known = life.s3.before

    def before(method: str, bucket: str, key: str) -> None:
        known(method, bucket, key)
        if method == "GET" and key.startswith("states/") and not readable:
            raise Denied("403 AccessDenied")
        if method == "COPY":
            seen[key] = there(life, first)

    life.s3.before = before
    life.rounds()
    in_progress = "status: in-progress, signalled_errors: 0\n"
    assert seen == {"latest/a": in_progress, "latest/b": in_progress}
    assert shown() == there(life, first) == "status: exported-successfully, signalled_errors: 0\n"


def test_nothing_is_changed_while_an_earlier_success_can_not_be_taken_back(life: Soak) -> None:
    first = life.lake.commit(files={"a": b"1"})
    life.set()
    life.rounds()
    life.lake.commit(files={"a": b"2"})
    life.rounds()
    life.lake.repository.branches["main"] = first
    life.denied = "states"
    life.rounds()
    assert (Export.objects.get().state, life.s3.buckets["out"]["latest/a"]) == ("export-failed", b"2")


def test_what_earlier_versions_wrote_is_concluded_from_their_runs(life: Soak) -> None:
    for denied in ("", "latest/a", "", "states", ""):
        life.lake.commit(files={"a": f"{denied} {len(life.log)}".encode()})
        life.set()
        life.denied = denied
        life.repair()
        life.rounds()
    noted = list(ExportRun.objects.order_by("pk").values_list("told", "told_path"))
    ExportRun.objects.update(told="", told_path="")
    import_module("exports.migrations.0009_status_files_as_they_stand").note_earlier_runs(apps, None)
    assert list(ExportRun.objects.order_by("pk").values_list("told", "told_path")) == noted
