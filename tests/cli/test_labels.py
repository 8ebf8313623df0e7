"""Labels and pauses by the command, against the application."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from exports.models import Export
from mirrors.models import Mirror
from notifications.models import Channel
from rbac.models import User
from tests.cli.speaking import Terminal
from tests.mirrors.harness import Deployment

pytestmark = pytest.mark.django_db
IN_LAKE = ("lake-eu", "--repository", "lake")
MAIN = "lakefs://lake/main"


@pytest.fixture
def olgas(terminal_of: Callable[[User], Terminal], owner: User, lm: Deployment) -> Terminal:
    """An administrator's terminal."""
    lm.lake.commit(files={"a": b"1"})
    return terminal_of(owner)


def test_a_mirror_is_labelled_and_found(olgas: Terminal) -> None:
    if not Mirror.objects.exists():
        made = olgas("mirror", "create", "lake-eu", "--repository", "lake", "--region", "eu-west-1",
                     "--storage-namespace", "s3://dst/lake", "--label", "team=ops")  # fmt: skip
        assert made.exit_code == 0, made.stderr
        assert Mirror.objects.get().labels == {"team": "ops"}
    done = olgas("mirror", "edit", *IN_LAKE, "--label", "team=sales", "--label", "tier=gold")
    assert done.exit_code == 0, done.stderr
    assert Mirror.objects.get().labels == {"team": "sales", "tier": "gold"}
    assert "team=sales, tier=gold" in olgas("mirror", "show", *IN_LAKE).stdout
    assert "lake-eu" in olgas("mirror", "list", "--label", "team=sales").stdout
    assert "No mirrors." in olgas("mirror", "list", "--label", "team=sales", "--label", "tier=x").stdout
    olgas("mirror", "edit", *IN_LAKE, "--remove-label", "tier")
    assert Mirror.objects.get().labels == {"team": "sales"}
    assert olgas("mirror", "edit", *IN_LAKE, "--remove-label", "tier").exit_code == 2
    assert olgas("mirror", "edit", *IN_LAKE, "--label", "Team=x").exit_code != 0


def test_an_export_is_labelled_and_paused_with_a_reason(olgas: Terminal) -> None:
    made = olgas("export", "set", MAIN, "--path", "s3://company-bucket/path", "--continuous")
    assert made.exit_code == 0, made.stderr
    done = olgas("export", "label", MAIN, "--label", "team=sales")
    assert done.exit_code == 0 and "Labels       team=sales" in done.stdout, done.stderr
    assert Export.objects.get().labels == {"team": "sales"}
    assert olgas("export", "label", MAIN).exit_code == 2
    paused = olgas("export", "pause", MAIN, "--reason", "bucket moves", "--for", "2h")
    assert "(bucket moves)" in paused.stdout and Export.objects.get().paused_until is not None
    olgas("export", "pause", MAIN, "--for", "0")
    assert Export.objects.get().paused_until is None and Export.objects.get().pause_reason == "bucket moves"
    olgas("export", "pause", MAIN, "--until", "2027-01-31T22:00")
    assert f"{Export.objects.get().paused_until:%Y-%m-%d %H:%M}" == "2027-01-31 22:00"
    assert olgas("export", "pause", MAIN, "--for", "1h", "--until", "2027-01-31T22:00").exit_code == 2


def test_a_channel_hears_by_labels(terminal_of: Callable[[User], Terminal], owner: User, lm: Deployment) -> None:
    run = terminal_of(owner)
    address = ("--address", "https://hooks.example.com/x", "--signing-secret", "0123456789abcdef")
    made = run("channel", "create", "pager", *address, "--label", "team=sales")
    assert made.exit_code == 0, made.stderr
    assert Channel.objects.get().labels == ["team=sales"]
    run("channel", "edit", "pager", "--region", "eu-*")
    assert Channel.objects.get().labels == ["team=sales"]
    run("channel", "edit", "pager", "--all-alerts")
    assert Channel.objects.get().labels == []
