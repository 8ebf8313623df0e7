"""Commands about exports against the application, on fake installations."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from exports.models import Export
from rbac.models import User
from tests.cli.speaking import StandIn, Terminal
from tests.exports.test_verification import drifted
from tests.mirrors.harness import Deployment

pytestmark = pytest.mark.django_db
MAIN = "lakefs://lake/main"
PATH = "s3://company-bucket/path"


@pytest.fixture
def olgas(terminal_of: Callable[[User], Terminal], owner: User, lm: Deployment) -> Terminal:
    """An administrator's terminal."""
    lm.lake.commit(files={"a": b"1"})
    return terminal_of(owner)


def test_an_export_is_set_shown_and_deleted(olgas: Terminal) -> None:
    assert olgas("export", "list").stdout == "No exports.\n"
    told = olgas("export", "set", MAIN, "--path", PATH, "--continuous", "--prefix-regex", "x/", "--prefix-regex", "y/")
    assert (told.exit_code, told.stdout) == (0, "The export is configured and starts now.\n"), told.stderr
    assert olgas.json("export", "get", "lakefs://lake@main") == {
        "exportPath": PATH,
        "exportStatusPath": "",
        "lastKeysInPrefixRegexp": ["x/", "y/"],
        "isContinuous": True,
        "manifest": "daily",
        "includeActions": False,
        "objectsPerSecond": None,
        "bytesPerSecond": None,
    }
    shown = olgas("export", "get", MAIN)
    assert "Continuous   yes" in shown.stdout and PATH in shown.stdout
    assert f"{MAIN}  Never exported  {PATH}" in olgas("export", "list").stdout
    assert olgas("export", "set", MAIN, "--path", PATH, "--continuous=false").exit_code == 0
    assert not Export.objects.get().continuous
    assert olgas("export", "delete", MAIN, typed="n\n").exit_code == 1
    gone = olgas("export", "delete", MAIN, "--yes")
    assert (gone.exit_code, gone.stdout) == (0, f"The export is deleted. The files at {PATH} stay.\n")


def test_the_region_goes_with_every_call(server: StandIn, run: Terminal) -> None:
    address = "/api/v1/repositories/lake/branches/main/continuous-export"
    server.answers["GET", address] = [(200, {"exportPath": PATH})]
    server.answers["DELETE", address] = [(204, None)]
    assert run("export", "delete", MAIN, "--yes", "--region", "eu west").exit_code == 0
    assert run("export", "delete", MAIN, "--yes").exit_code == 0
    assert [asked.query for asked in server.asked] == 2 * [{"region": "eu west"}] + 2 * [{}]


def test_exit_codes_tell_the_truth(olgas: Terminal) -> None:
    assert olgas("export", "get", MAIN).exit_code == 4
    assert olgas("export", "get", "lake/main").exit_code == 2
    assert olgas("export", "set", MAIN, "--path", PATH).exit_code == 2  # --continuous must be said
    assert olgas("export", "set", MAIN, "--path", "nowhere", "--continuous").exit_code == 2
    assert olgas("export", "set", MAIN, "--path", PATH, "--continuous").exit_code == 0
    assert olgas("export", "repair", MAIN).exit_code == 5
    run = olgas("export", "run", MAIN)
    assert (run.exit_code, run.stdout) == (0, "Export-ID:1\n")
    assert olgas("export", "run", MAIN).exit_code == 5
    assert olgas("export", "status", MAIN).exit_code == 0
    Export.objects.update(state="export-failed", error="3 tasks failed")
    status = olgas("export", "status", MAIN)
    assert (status.exit_code, "3 tasks failed" in status.stdout) == (1, True)
    waited = olgas("export", "run", MAIN, "--wait")
    assert (waited.exit_code, "Repair it first" in waited.stderr) == (5, True)


def test_a_destination_is_verified(olgas: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    olgas("export", "set", MAIN, "--path", PATH, "--continuous")
    refused = olgas("export", "verify", MAIN)
    assert (refused.exit_code, "nothing to verify" in refused.stderr) == (5, True)
    Export.objects.update(last_success_ref="9f31c0aa" * 8, path_at_success=PATH)
    asked = olgas("export", "verify", MAIN)
    assert (asked.exit_code, "Comparing: 9f31c0aa" in asked.stdout) == (0, True), asked.stderr
    found = drifted(Export.objects.get())
    monkeypatch.setattr("exports.engine.verifications.begin", lambda export, asked_by: found)
    told = olgas("export", "verify", MAIN, "--wait")
    assert (told.exit_code, told.stdout.splitlines()[2:]) == (1, ["+ a b", "* c", "- =bad"]), told.stderr
    assert "7 files equal (1,000 bytes), 1 missing, 1 different, 1 foreign" in told.stdout
    as_json = olgas("export", "verify", MAIN, "--json")
    assert (as_json.exit_code, json.loads(as_json.stdout)["outcome"]) == (1, "drifted")
    status = olgas("export", "status", MAIN)
    assert (status.exit_code, status.stdout.startswith(f"{MAIN}: Drifted")) == (1, True), status.stdout
    assert "Repair drift" in status.stdout and "Drifted" in olgas("export", "list").stdout
    for outcome, code in (("equal", 0), ("outdated", 1), ("failed", 1)):
        found.outcome = outcome
        found.save()
        assert olgas("export", "verify", MAIN, "--wait").exit_code == code


def test_manifest_and_actions_are_said_or_stay(olgas: Terminal) -> None:
    given = "--path", PATH, "--continuous"
    assert olgas("export", "set", MAIN, *given, "--manifest", "never", "--actions").exit_code == 0
    assert olgas("export", "set", MAIN, *given).exit_code == 0
    export = Export.objects.get()
    assert (export.manifest, export.actions) == ("never", True)
    shown = olgas("export", "get", MAIN).stdout
    assert "Manifest     never" in shown and "Actions      yes" in shown
    assert olgas("export", "set", MAIN, *given, "--no-actions").exit_code == 0
    assert not Export.objects.get().actions
    assert olgas("export", "set", MAIN, *given, "--manifest", "hourly").exit_code == 2


def test_drift_is_repaired_after_a_question(olgas: Terminal) -> None:
    olgas("export", "set", MAIN, "--path", PATH, "--continuous")
    success = {"state": "exported-successfully", "last_success_ref": "9f" * 32, "path_at_success": PATH}
    Export.objects.update(**success)
    export = Export.objects.get()
    found = drifted(export)
    told = olgas("export", "repair-drift", MAIN, typed="n\n")
    assert (told.exit_code, export.runs.count()) == (1, 0)
    assert "1 missing, 1 different, 1 foreign (they stay)" in told.stderr
    told = olgas("export", "repair-drift", MAIN, "--remove", typed="y\n")
    run = export.runs.get()
    assert (told.exit_code, told.stdout, run.repairs_id) == (0, f"Export-ID:{run.pk}\n", found.pk), told.stderr
    refused = olgas("export", "repair-drift", MAIN, "--yes")
    assert refused.exit_code == 5 and "an export is in progress" in refused.stderr


def test_a_branch_has_several_exports_by_name(olgas: Terminal) -> None:
    partner, other = f"{MAIN}:partner", "s3://partner-bucket/lake"
    assert olgas("export", "set", MAIN, "--path", PATH, "--continuous").exit_code == 0
    told = olgas("export", "set", partner, "--path", PATH, "--continuous")
    assert told.exit_code == 2 and "overlap" in told.stderr
    assert olgas("export", "set", partner, "--path", other, "--continuous=false").exit_code == 0
    listed = olgas("export", "list").stdout
    assert f"{MAIN}  " in listed and f"{partner}  " in listed
    assert olgas.json("export", "get", "lakefs://lake@main:partner")["exportPath"] == other
    assert olgas("export", "status", partner).stdout.startswith(f"{partner}: Never exported")
    assert olgas("export", "run", partner).exit_code == 0
    assert not Export.objects.get(name="").runs.exists()
    assert olgas("export", "delete", partner, "--yes").stdout == f"The export is deleted. The files at {other} stay.\n"
    assert [export.name for export in Export.objects.filter(deleting=False)] == [""]
    missing = olgas("export", "status", f"{MAIN}:partner")
    assert missing.exit_code == 4 and "no export 'partner' is configured" in missing.stderr
