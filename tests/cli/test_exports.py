"""Commands about exports against the application, on fake installations."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from exports.models import Export
from rbac.models import User
from tests.cli.speaking import Terminal
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
    assert olgas("export", "list").stdout == "There is no export.\n"
    told = olgas("export", "set", MAIN, "--path", PATH, "--continuous", "--prefix-regex", "x/", "--prefix-regex", "y/")
    assert (told.exit_code, told.stdout) == (0, "The export is configured; it begins at once.\n"), told.stderr
    assert olgas.json("export", "get", "lakefs://lake@main") == {
        "exportPath": PATH,
        "exportStatusPath": "",
        "lastKeysInPrefixRegexp": ["x/", "y/"],
        "isContinuous": True,
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
