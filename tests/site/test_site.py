"""What every process shares: health, the state of preparation, logs, the demo's mirrors and exports."""

from __future__ import annotations

import json
import logging
import os
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client, RequestFactory
from launcher import demo
from launcher.status import Status

from core.errors import Conflict, Denied, Unreachable
from deployment import config, preparation, spark_server
from lakemirror import __version__
from lakemirror_site import logs
from lakemirror_site.management.commands import demo_setup


@pytest.fixture
def status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Status:
    """A run's status in a folder of its own."""
    path = tmp_path / "status.json"
    monkeypatch.setenv("LAKEMIRROR_STATUS", str(path))
    return Status(path, {"sandbox": "Two regions", "spark": "Spark"})


def test_pages_read_what_the_launcher_writes(status: Status) -> None:
    status.set("sandbox", "ready")
    status.set("spark", "running", "installing")
    now = preparation.status()
    assert bool(now)
    assert [stage.name for stage in now.unfinished] == ["spark"]
    assert now.unfinished[0].detail == "installing"
    assert not now.failed


def test_nothing_is_being_prepared_once_every_stage_is_ready(status: Status) -> None:
    for name in ("sandbox", "spark"):
        status.set(name, "ready")
    assert not preparation.status()


def test_a_stage_that_failed_is_told(status: Status) -> None:
    status.set("spark", "failed", "no network")
    assert preparation.status().failed


def test_without_a_launcher_everything_is_ready(status: Status) -> None:
    status.remove()
    assert not preparation.status()


def test_what_a_launcher_that_is_gone_left_behind_counts_as_nothing(status: Status) -> None:
    path = Path(os.environ["LAKEMIRROR_STATUS"])
    path.write_text(json.dumps(json.loads(path.read_text()) | {"pid": 2**22 + 1}))
    assert not preparation.status()


def test_health_asks_nothing_of_the_database(client: Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}


def test_the_version_is_that_of_the_command(client: Client) -> None:
    assert client.get("/version").json() == {"version": __version__}


def record(**extra: Any) -> logging.LogRecord:
    made = logging.makeLogRecord({"name": "mirrors", "levelno": logging.WARNING, "levelname": "WARNING", "msg": "late"})
    vars(made).update(extra)
    return made


def test_a_probe_that_is_told_503_is_no_line_in_the_log() -> None:
    probe, page = RequestFactory().get("/readyz"), RequestFactory().get("/mirrors")
    filtered = [logs.WithoutProbes().filter(record(request=asked)) for asked in (probe, page)]
    assert filtered == [False, True]
    assert logs.WithoutProbes().filter(record())


def test_text_logs_are_one_readable_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEMIRROR_SUPERVISED", "1")
    assert logs.TextFormatter().format(record(mirror="lake-eu")) == "WARNING mirrors: late mirror=lake-eu"


def test_json_logs_are_one_object_with_what_the_call_added() -> None:
    line = json.loads(logs.JsonFormatter().format(record(mirror="lake-eu")))
    assert (line["level"], line["message"], line["mirror"]) == ("WARNING", "late", "lake-eu")


def test_sparks_server_is_told_no_secret_but_what_opens_sealed_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = config.development({"LAKEMIRROR_VAR": str(tmp_path)})
    monkeypatch.setenv("REPLICATION_AUTH_ENCRYPT_SECRET_KEY", "a secret")
    monkeypatch.setenv("source_lakefs_secret_access_key", "a secret")
    monkeypatch.setenv("LAKEMIRROR_ADMIN_PASSWORD", "a secret")
    monkeypatch.setenv("LAKEMIRROR_STORE_MARS_1_ACCESS_KEY_ID", "of a store that it is told of in this way")
    command, environment = spark_server.start(settings, 8120, [])
    assert "lakemirror-demo-secret" not in f"{command}{environment}"
    assert "a secret" not in environment.values()
    assert environment["LAKEMIRROR_STORES_KEY"] == settings.derived_key("executors")
    assert "LAKEMIRROR_STORE_MARS_1_ACCESS_KEY_ID" in environment


def test_sparks_own_settings_hold_no_secret(tmp_path: Path) -> None:
    told = spark_server.settings_of_spark(8120, tmp_path, [])
    assert "lakemirror-demo-secret" not in str(told)
    assert told["spark.connect.grpc.binding.address"] == "127.0.0.1"


def test_each_java_has_classes_of_its_own_kept(tmp_path: Path) -> None:
    homes = [tmp_path / name for name in ("one", "other")]
    for home in homes:
        (home / "bin").mkdir(parents=True)
        java = home / "bin" / "java"
        java.write_text("#!/bin/sh\necho version >&2\n")
        java.chmod(0o755)
    assert len({spark_server.class_archive(str(home), tmp_path) for home in homes}) == 2


class Verbs:
    """Stands for the services of mirrors, where each call is answered with the next outcome, and of exports."""

    def __init__(self, *outcomes: Exception | None) -> None:
        self.outcomes = list(outcomes)
        self.told: list[dict[str, Any]] = []
        self.exported: list[dict[str, Any]] = []
        self.copied: list[dict[str, Any]] = []

    def mirror_create(self, **told: Any) -> None:
        self.told.append(told)
        outcome = self.outcomes.pop(0)
        if outcome is not None:
            raise outcome

    def export_set(self, **told: Any) -> None:
        self.exported.append(told)

    def rule_create(self, **told: Any) -> None:
        self.copied.append(told)


def set_up(monkeypatch: pytest.MonkeyPatch, *outcomes: Exception | None) -> tuple[Verbs, str]:
    """Run demo_setup on these outcomes; (the calls, what it said)."""
    verbs, said = Verbs(*outcomes), StringIO()
    monkeypatch.setattr(demo_setup, "mirrors", verbs)
    monkeypatch.setattr(demo_setup, "exports", verbs)
    monkeypatch.setattr(demo_setup, "rules", verbs)
    call_command("demo_setup", actor="olga", stdout=said)
    return verbs, said.getvalue()


@pytest.mark.django_db
@pytest.mark.usefixtures("owner")
class TestDemoSetup:
    def test_it_mirrors_one_repository_twice_and_another_the_other_way_round(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        verbs, said = set_up(monkeypatch, None, None, None)
        ways = [(made["source_region"], made["source_repository"], made["region"]) for made in verbs.told]
        assert ways == [
            ("us-east-1", "lake", "eu-west-1"),
            ("us-east-1", "lake", "ap-southeast-2"),
            ("eu-west-1", "orders", "us-east-1"),
        ]
        assert "created mirror lake-eu" in said

    def test_it_exports_one_that_goes_on_and_one_to_a_place_that_refuses(self, monkeypatch: pytest.MonkeyPatch) -> None:
        verbs, said = set_up(monkeypatch, None, None, None)
        places = {made["repository"]: made["wish"].path for made in verbs.exported}
        assert places == {"lake": "s3://company-bucket/latest", "orders": f"s3://{demo.DENIED}"}
        assert {place.split("/")[2] for place in places.values()} == set(demo.EXPORTED_TO)
        assert "sandbox ctl allow partner-bucket; then click Repair" in said

    def test_it_copies_what_is_exported_to_one_place_that_takes_it_and_one_that_refuses(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        verbs, said = set_up(monkeypatch, None, None, None)
        [wish] = [made["wish"] for made in verbs.copied]
        assert wish.uri == verbs.exported[0]["wish"].path
        assert [target.uri for target in wish.targets] == ["s3://company-bucket/copies", f"s3://{demo.DENIED}"]
        assert "created rule company-copies" in said

    def test_it_waits_for_regions_that_are_still_starting(self, monkeypatch: pytest.MonkeyPatch) -> None:
        verbs, _ = set_up(monkeypatch, Unreachable("not yet"), None, None, None)
        assert [made["name"] for made in verbs.told] == ["lake-eu", "lake-eu", "lake-ap", "orders-us"]

    def test_a_mirror_that_exists_is_well(self, monkeypatch: pytest.MonkeyPatch) -> None:
        said = set_up(monkeypatch, Conflict("taken"), None, None)[1]
        assert "lake-eu exists already" in said
        assert "created mirror lake-ap" in said

    def test_what_waiting_cannot_heal_is_told_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(CommandError, match="no right"):
            set_up(monkeypatch, Denied("no right"))
