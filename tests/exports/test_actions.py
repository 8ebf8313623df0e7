"""Exports leave out what is below `_lakefs_actions/` unless they are told not to; a change of mind is carried out."""

from __future__ import annotations

import pytest

from exports.models import Export, ExportRun
from exports.services.exports import export_verify
from tests.exports.soak import Soak
from tests.exports.world import World

pytestmark = pytest.mark.django_db
HOOK = "_lakefs_actions/hook.yaml"


def last_run() -> ExportRun:
    run = ExportRun.objects.order_by("-pk").first()
    assert run is not None
    return run


def verified(w: World, export: Export) -> tuple[str, int]:
    asked = export_verify(actor=w.owner, export=export)
    w.work(2)
    asked.refresh_from_db()
    assert asked.error == ""
    return asked.outcome, asked.files


def test_a_new_export_has_none_of_them(w: World) -> None:
    w.lake.commit(files={"_a": b"0", HOOK: b"on: push", "_lakefs_actions0": b"1", "a": b"2"})
    export = w.set(manifest="always", patterns=[".*"])
    w.work()
    data = {"_a", "_lakefs_actions0", "a"}
    assert set(w.there()) == {*data, "_lakefs_success"}
    (listed,) = [body for key, body in w.there("states/").items() if "_MANIFEST_" in key]
    assert len(listed.splitlines()) == 3 and b"hook" not in listed
    assert verified(w, export) == ("equal", 3)
    w.lake.commit(files={HOOK: b"on: merge", "_lakefs_actions/other.yaml": b"x"})
    w.work()
    run = last_run()
    assert (run.outcome, run.to_copy, run.to_delete) == ("exported-successfully", 0, 0)
    assert set(w.there()) == {*data, "_lakefs_success"}
    w.put(f"latest/{HOOK}")
    assert verified(w, export) == ("drifted", 3)
    w.lake.commit(files={HOOK: None})
    w.work()
    assert w.there()[HOOK] == b"theirs"  # nobody's business


def test_who_asks_for_them_gets_them_and_who_no_longer_does_loses_ours(w: World) -> None:
    w.lake.commit(files={HOOK: b"on: push", "_lakefs_actions/second.yaml": b"y", "a": b"2"})
    export = w.set()
    w.work()
    assert set(w.there()) == {"a"}
    w.set(actions=True, continuous=False)  # the head is exported, but without them
    w.work()
    assert set(w.there()) == {"a", HOOK, "_lakefs_actions/second.yaml"}
    assert (last_run().to_copy, last_run().copied) == (2, 2)
    assert verified(w, export) == ("equal", 3)
    w.set()  # what is not said stays as it was
    w.work()
    assert HOOK in w.there() and Export.objects.get().actions
    w.put("latest/_lakefs_actions/theirs.yaml")
    w.put("latest/_lakefs_actions/second.yaml", b"another")
    w.set(actions=False)
    w.work()
    assert set(w.there()) == {"a", "_lakefs_actions/theirs.yaml", "_lakefs_actions/second.yaml"}
    run = last_run()
    assert (run.deleted, run.kept, run.kept_keys) == (1, 1, ["_lakefs_actions/second.yaml"])
    assert not Export.objects.get().actions_at_success


def test_a_change_of_mind_that_failed_is_carried_out_by_the_next_run(life: Soak) -> None:
    life.lake.commit(files={HOOK: b"1", "d2/a": b"2"})
    export = life.set("s3://out/latest", [], True)
    assert export is not None
    life.rounds(3)
    Export.objects.update(actions=True, wanted=True)
    life.denied = HOOK
    life.rounds(3)
    export = Export.objects.get()
    assert (export.state, export.actions_at_success) == ("export-failed", False)
    life.denied = ""
    life.repair()
    life.rounds(4)
    assert life.s3.buckets["out"][f"latest/{HOOK}"] == b"1"
    assert Export.objects.get().actions_at_success


def test_those_at_a_place_that_was_left_go_also_after_a_run_that_failed_there(life: Soak) -> None:
    def go(path: str, *, actions: bool) -> None:
        life.set(path)
        Export.objects.update(actions=actions)
        life.rounds(4)

    life.lake.commit(files={HOOK: b"1", "d2/a": b"2"})
    go("s3://out/latest", actions=True)
    go("s3://out/other", actions=False)
    life.lake.commit(files={"d2/a": b"3"})
    life.denied = "states"
    go("s3://out/latest", actions=False)
    assert Export.objects.get().state == "export-failed"
    assert life.s3.buckets["out"][f"latest/{HOOK}"] == b"1"
    life.denied = ""
    life.repair()
    life.rounds(4)
    assert Export.objects.get().state == "exported-successfully"
    assert f"latest/{HOOK}" not in life.s3.buckets["out"]


def test_a_run_of_the_version_before_brings_them_and_the_next_one_takes_them_away(w: World) -> None:
    w.lake.commit(files={HOOK: b"on: push", "a": b"2"})
    export = w.set(actions=True)
    w.work()
    Export.objects.filter(pk=export.pk).update(actions=False, actions_at_success=False)  # it doesn't know of these
    w.lake.commit(files={"a": b"3"})
    w.work()
    assert set(w.there()) == {"a"}
