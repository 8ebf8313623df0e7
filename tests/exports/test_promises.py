"""What the export of old got wrong, or said in one line: each call with its codes, the order of writes, no lost end."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from django.test import Client

from core.errors import Invalid
from core.exporting import manifests
from exports.engine import advance
from exports.models import Export, ExportRun
from exports.services import destinations
from tests.api import Api
from tests.exports.soak import Soak
from tests.exports.test_places import at

pytestmark = pytest.mark.django_db
BRANCH = "/api/v1/repositories/lake/branches/main"
CONFIG, HOOK, REPAIR = f"{BRANCH}/continuous-export", f"{BRANCH}/export-hook", f"{BRANCH}/repair-export"
BODY = {"exportPath": "s3://out/latest", "exportStatusPath": "s3://out/states", "isContinuous": True}


def refused(api: Api, path: str) -> tuple[int, str]:
    status, told = api.call("POST", path)
    return status, told["message"]


def state() -> str:
    return Export.objects.get().state


def test_each_call_answers_with_its_code_in_each_state(life: Soak, api: Api) -> None:
    life.lake.commit(files={"a": b"1", "d2/a": b"2"})
    assert Client().get(CONFIG).status_code == Client().post(HOOK).status_code == 401
    assert api.call("PUT", CONFIG, BODY)[0] == 201
    assert refused(api, REPAIR) == (409, "nothing to repair: the export is never exported, not export-failed")
    assert api.call("POST", HOOK)[0] == 201
    assert refused(api, HOOK)[1].startswith("export currently in progress")
    life.rounds(2)
    assert (state(), refused(api, HOOK)[0]) == ("exported-successfully", 409)
    assert refused(api, HOOK)[1].startswith("nothing to export")
    assert api.call("PUT", CONFIG, {**BODY, "exportPath": "s3://out/other", "isContinuous": False})[0] == 201
    life.denied = "d2"
    assert api.call("POST", HOOK)[0] == 201  # the same commit, at another place
    life.rounds(2)
    assert (state(), refused(api, HOOK)[0]) == ("export-failed", 409)
    assert "Repair it first" in refused(api, HOOK)[1]
    assert api.call("POST", REPAIR) == (201, None)
    life.denied = ""
    life.rounds()
    assert (state(), api.call("GET", f"{BRANCH}/export-status")[1]["status"]) == ("exported-successfully",) * 2
    life.unbranch()
    assert (refused(api, HOOK)[0], api.call("PUT", CONFIG, BODY)[0]) == (404, 404)
    assert api.call("GET", CONFIG)[0] == 200  # it is there, and has to be seen to be deleted
    assert api.call("DELETE", CONFIG) == (204, None)
    life.rounds(1)
    assert not Export.objects.exists() and at(life, "other") == {"a", "d2/a"}


def test_data_then_markers_from_below_then_manifest_then_status_then_the_database(life: Soak) -> None:
    head = life.lake.commit(files={"a": b"1", "d1/e1/a": b"2", "d2/a": b"3", "d2/_SUCCESS": b""})
    life.set(patterns=[r"^(d1/|d1/e1/)?$", ".*/_SUCCESS"])
    seen: list[str] = []
    told: list[str] = []

    def look(method: str, bucket: str, key: str) -> None:
        life._after(method, bucket, key)
        if key.startswith("states/"):
            seen.append(state())
        if "_STATUS_" in key and method == "PUT":
            told.append(json.loads(life.s3.buckets[bucket][key])["status"])
            assert life.s3.described(bucket, key)["content-type"] == "application/json"

    life.s3.after = look
    life.rounds()
    written = [key.removeprefix("latest/") for method, key in life.log if method in ("PUT", "COPY")]
    assert "_STATUS_" in written[0] and list(dict.fromkeys(told)) == ["in-progress", "exported-successfully"]
    written = written[told.count("in-progress") :]
    assert sorted(written[:3]) == ["a", "d1/e1/a", "d2/a"]
    markers = [f"{directory}_lakefs_success" for directory in ("d1/e1/", "d1/", "")]
    assert written[3:7] == ["d2/_SUCCESS", *markers]
    assert ("_MANIFEST_" in written[7], "_STATUS_" in written[8]) == (True, True)
    assert written[9:] == [f"states/lake-main-{head}"]
    assert (set(seen), state()) == ({"in-progress"}, "exported-successfully")


def test_an_export_that_was_skipped_writes_nothing(life: Soak) -> None:
    life.lake.commit(files={"a": b"1"})
    life.set()
    life.rounds(1)
    skipped, last = life.lake.commit(files={"a": b"2"}), life.lake.commit(files={"a": b"3"})
    life.rounds()
    states = {key for _, key in life.log if key.startswith("states/lake-main-")}
    assert f"states/lake-main-{last}" in states and f"states/lake-main-{skipped}" not in states
    assert not any(skipped in data.decode() for key, data in life.s3.buckets["out"].items() if "_STATUS_" in key)


def test_continuous_off_means_no_catch_up_and_on_means_now(life: Soak) -> None:
    first = life.lake.commit(files={"a": b"1"})
    life.set()
    life.rounds(1)
    later = life.lake.commit(files={"a": b"2"})
    Export.objects.update(continuous=False)
    life.rounds()
    assert Export.objects.get().last_success_ref == first
    life.set(continuous=True)
    life.rounds()
    assert Export.objects.get().last_success_ref == later


def test_a_plan_that_can_not_be_made_is_a_failure_that_is_repaired(life: Soak) -> None:
    life.lake.commit(files={"a": b"1"})
    source = life.s3.buckets["src"]
    files = {key: source.pop(key) for key in list(source) if "/_lakefs/" in key}
    life.set()
    life.rounds()
    assert state() == "export-failed"
    assert "the commit's metadata is gone at the source" in Export.objects.get().error
    source |= files
    life.repair()
    life.rounds()
    assert state() == "exported-successfully"


def test_a_run_whose_worker_dies_each_time_is_a_failure_and_not_in_progress_for_ever(life: Soak) -> None:
    life.lake.commit(files={"a": b"1"})
    life.set()
    life.rounds(1)
    for _ in range(advance.MOST_TAKEOVERS + 1):
        life.kill_in = 1
        life.work()
    life.kill_in = 0
    life.rounds(1)
    assert state() == "export-failed"
    assert "its worker was lost 5 times in a row" in Export.objects.get().error
    life.repair()
    life.rounds()
    assert (state(), at(life), ExportRun.objects.count()) == ("exported-successfully", {"a"}, 2)


def test_a_manifest_is_never_in_memory_whole() -> None:
    taken = 0

    def files() -> Iterator[tuple[bytes, str, int]]:
        nonlocal taken
        for taken in range(1, 30_001):
            yield b"k%d" % taken, "e", 1

    pieces = manifests.lines(files())
    assert next(pieces).count(b"\n") == taken == manifests.LINES_AT_ONCE
    assert sum(piece.count(b"\n") for piece in pieces) == 20_000


def test_the_sources_region_exports() -> None:
    destinations.check_region("us-east-1")
    with pytest.raises(Invalid):
        destinations.check_region("mars")
