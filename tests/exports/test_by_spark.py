"""Whole runs with every piece of work done by Spark Connect, as `exports.small_files: 0` has it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
import requests

from deployment import config
from exports.models import Export, ExportRun
from rbac.models import User
from spark_jobs.runner import spark
from tests.exports.world import World, world
from tests.mirrors.harness import Deployment
from tests.s3_double import running_moto
from tests.spark.server import ConnectServer

pytestmark = [pytest.mark.django_db, pytest.mark.spark]


@pytest.fixture
def w(lm: Deployment, owner: User, spark_server: ConnectServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A world whose workers do nothing of an export by themselves."""
    monkeypatch.setenv("SPARK_REMOTE", spark_server.url)
    settings = config.current()
    none_here = replace(
        settings,
        exports=replace(settings.exports, small_files=0),
        validator=replace(settings.validator, small_check_entries=0),
    )
    monkeypatch.setattr(config, "current", lambda: none_here)
    with running_moto() as endpoint:
        requests.post(f"{endpoint}/moto-api/reset", timeout=5)  # its buckets are those of all servers of this process
        with world(lm, endpoint) as made:
            made.owner = owner
            yield made
    spark(spark_server.url).session().stop()


def run_of(export: Export) -> ExportRun:
    export.refresh_from_db()
    assert (export.state, export.error) == ("exported-successfully", "")
    run = export.runs.order_by("-pk").first()
    assert run is not None
    return run


def marked(w: World) -> set[str]:
    return {key for key in w.there() if key.endswith("_lakefs_success")}


def test_two_runs_by_spark(w: World) -> None:
    files = {f"d{number % 3}/{number:03d}": b"%d" % number for number in range(60)}
    first = w.lake.commit(files={**files, "d1/_SUCCESS": b"", "d2/_lakefs_success": b"a user's"})
    w.put("latest/d0/theirs")
    export = w.set(patterns=[r"^d\d/", ".*/_SUCCESS"], manifest="always")
    w.work()
    run = run_of(export)
    assert (run.copied, run.deleted, run.failed) == (62, 0, 0)
    assert w.problems(first, foreign=("d0/theirs",)) == []
    assert marked(w) == {"d0/_lakefs_success", "d1/_lakefs_success", "d2/_lakefs_success"}
    listed = [body for key, body in w.there("states/").items() if "_MANIFEST_" in key]
    lines = [json.loads(line) for body in listed for line in body.splitlines()]
    assert [line["path"] for line in lines] == sorted(w.tree(first))  # by Spark, put together by the worker
    assert {line["path"]: line["etag"] for line in lines} == w.tree(first)
    gone: dict[str, bytes | None] = {f"d0/{number:03d}": None for number in range(0, 60, 3)}
    second = w.lake.commit(files={**gone, "d1/_SUCCESS": b"again", "d1/001": b"other"})
    w.work()
    run = run_of(export)
    assert (run.base, run.copied, run.deleted, run.failed) == (first, 2, 20, 0)
    assert w.problems(second, foreign=("d0/theirs",)) == []
    assert w.there()["d0/theirs"] == b"theirs"
    assert w.there()["d2/_lakefs_success"] == b"a user's"
