"""What a verification found amiss is brought again, by a run of its own; a verification follows it."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from audit.models import AuditEvent
from console.exports_summary import summary
from core.errors import Conflict, Denied
from db import clock
from exports.engine import drift_repairs
from exports.models import Export, ExportRun, ExportVerification
from exports.services.exports import (
    export_delete,
    export_pause,
    export_repair,
    export_repair_drift,
    export_run,
    export_verify,
)
from exports.status.export import export_statuses
from rbac.models import User
from tests.api import Api
from tests.exports.soak import Soak
from tests.exports.test_pages import an_export, body
from tests.exports.test_verification import BRANCH, DONE, drifted
from tests.exports.world import World
from tests.mirrors.harness import Deployment

pytestmark = pytest.mark.django_db


def exported(w: World, **more: Any) -> Export:
    w.lake.commit(files={"a": b"1", "d/b": b"2", "d/c": b"3", "e/f": b"4"})
    export = w.set(**more)
    w.work()
    export.refresh_from_db()
    return export


def look(w: World, export: Export) -> ExportVerification:
    asked = export_verify(actor=w.owner, export=export)
    w.work(2)
    asked.refresh_from_db()
    return asked


def told(export: Export) -> tuple[str, str, str]:
    export.refresh_from_db()
    (reading,) = export_statuses([export], clock.now())
    return reading.told.state.value, reading.told.word, reading.told.action


def repaired(w: World, export: Export, *, remove: bool = False) -> ExportRun:
    run = export_repair_drift(actor=w.owner, export=export, remove=remove)
    w.work()
    run.refresh_from_db()
    return run


def test_what_is_missing_or_different_is_brought_again_and_proven(w: World) -> None:
    export = exported(w, patterns=["d/"])
    w.client.delete_object(Bucket="out", Key="latest/d/b")
    w.put("latest/d/c", b"another")
    w.put("latest/theirs")
    assert look(w, export).drifted == 3
    assert told(export) == ("damaged", "Drifted", "repair-drift")
    run = export_repair_drift(actor=w.owner, export=export, remove=False)
    assert told(export)[1:] == ("Repairing", "")
    assert [need.verb for need in summary(w.owner, clock.now(), 5).some] == [""]
    w.work()
    run.refresh_from_db()
    assert (run.outcome, run.to_copy, run.copied, run.deleted) == ("exported-successfully", 2, 2, 0)
    assert w.problems(export.last_success_ref, foreign=("theirs",)) == []
    assert w.there()["theirs"] == b"theirs" and w.there()["d/_lakefs_success"] == b""
    last = ExportVerification.objects.latest("pk")
    assert (last.outcome, last.missing, last.different, last.foreign) == ("drifted", 0, 0, 1)
    assert told(export)[:2] == ("up_to_date", "Exported")
    event = AuditEvent.objects.filter(verb="repair").latest("pk")
    assert event.subject == export.audit_name and event.after["remove_foreign"] is False


def test_what_the_export_brought_earlier_is_removed_when_asked_and_nothing_else(w: World) -> None:
    export = exported(w)
    w.lake.commit(files={"d/b": None, "b2": b"gone for good", "g": b"5"})
    w.work()
    w.lake.commit(files={"b2": None})
    w.work()
    w.put("latest/d/b", b"2")  # as an earlier commit had it: somebody has brought it back
    w.put("latest/a2", b"theirs")
    w.put("latest/d/b2", b"2")
    assert look(w, export).foreign == 3
    with pytest.raises(Conflict, match="nothing is missing or different"):
        export_repair_drift(actor=w.owner, export=export, remove=False)
    run = repaired(w, export, remove=True)
    assert (run.outcome, run.deleted, run.copied) == ("exported-successfully", 1, 0)
    assert set(w.there()) == {"a", "d/c", "e/f", "g", "a2", "d/b2"}


def test_one_that_fails_leaves_nothing_taken_for_granted(life: Soak) -> None:
    life.lake.commit(files={"a": b"1", "d1/_SUCCESS": b"", "d1/a": b"2", "d2/a": b"3"})
    export = life.set("s3://out/latest", [".*/_SUCCESS"], True)
    life.rounds(3)
    out = life.s3.buckets["out"]
    for key in ("d1/a", "d2/a"):
        del out[f"latest/{key}"]
    export_verify(actor=life.owner, export=export)
    life.rounds(2)
    life.denied = "d2"
    export_repair_drift(actor=life.owner, export=Export.objects.get(), remove=False)
    life.rounds(2)
    export.refresh_from_db()
    assert (export.state, export.path_at_success) == ("export-failed", "")
    with pytest.raises(Conflict, match="Repair it first"):
        export_repair_drift(actor=life.owner, export=export, remove=False)
    del out["latest/a"]  # meanwhile more of it goes
    life.denied = ""
    export_repair(actor=life.owner, export=export)
    life.rounds(4)
    assert {key for key in out if key.startswith("latest/")} >= {"latest/a", "latest/d1/a", "latest/d2/a"}
    assert Export.objects.get().state == "exported-successfully"


def test_it_looks_only_where_something_drifted_if_that_is_named(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    export = exported(w)
    w.client.delete_object(Bucket="out", Key="latest/d/b")
    found = look(w, export)
    assert repaired(w, export).to_copy == 1
    w.client.delete_object(Bucket="out", Key="latest/a")
    w.client.delete_object(Bucket="out", Key="latest/e/f")
    found = look(w, export)
    found.drift.filter(key=b"a").delete()  # as if there had been no room to name it
    run = repaired(w, export)
    assert (run.to_copy, run.copied, run.skipped) == (4, 2, 2)


def test_of_an_export_that_never_ran_nothing_is_said_to_go_on(w: World) -> None:
    w.lake.commit(files={"a": b"1"})
    with pytest.raises(Conflict, match="nothing to repair"):
        export_repair_drift(actor=w.owner, export=w.set(), remove=False)


def test_when_it_may_not_be(w: World) -> None:
    export = exported(w)
    with pytest.raises(Conflict, match="no verification has found a problem"):
        export_repair_drift(actor=w.owner, export=export, remove=True)
    w.client.delete_object(Bucket="out", Key="latest/a")
    look(w, export)
    export_verify(actor=w.owner, export=export)
    with pytest.raises(Conflict, match="is being verified"):
        export_repair_drift(actor=w.owner, export=export, remove=False)
    w.work(2)
    w.lake.commit(files={"z": b"9"})
    export.refresh_from_db()
    export_run(actor=w.owner, export=export)
    with pytest.raises(Conflict, match="in progress"):
        export_repair_drift(actor=w.owner, export=export, remove=False)


def test_in_a_pause_it_waits_and_then_goes_before_newer_commits(w: World) -> None:
    export = exported(w)
    w.client.delete_object(Bucket="out", Key="latest/a")
    export_pause(actor=w.owner, export=export, paused=True)
    w.lake.commit(files={"z": b"9"})
    look(w, export)
    run = export_repair_drift(actor=w.owner, export=export, remove=False)
    w.work(2)
    assert "a" not in w.there() and told(export) == ("damaged", "Drifted", "resume")
    export_pause(actor=w.owner, export=export, paused=False)
    w.work()
    run.refresh_from_db()
    assert (run.outcome, run.ref, {"a", "z"} <= set(w.there())) == (
        "exported-successfully",
        export.last_success_ref,
        True,
    )
    assert told(export)[1] == "Exported"


def test_an_export_that_was_asked_for_before_is_made_after_it(w: World) -> None:
    export = exported(w, continuous=False)
    w.client.delete_object(Bucket="out", Key="latest/a")
    look(w, export)
    export_pause(actor=w.owner, export=export, paused=True)
    head = w.lake.commit(files={"z": b"9"})
    w.set(continuous=False)  # one export now, of this head
    run = export_repair_drift(actor=w.owner, export=export, remove=False)
    export_pause(actor=w.owner, export=export, paused=False)
    w.work()
    run.refresh_from_db()
    export.refresh_from_db()
    assert (run.outcome, export.last_success_ref) == ("exported-successfully", head)
    assert w.problems(head) == []


def test_what_an_earlier_verification_found_is_not_forgotten_for_one_that_was_broken_off(w: World) -> None:
    export = exported(w)
    for key in ("a", "e/f"):
        w.client.delete_object(Bucket="out", Key=f"latest/{key}")
    assert look(w, export).missing == 2
    broken_off = look(w, export)
    broken_off.drift.filter(key=b"e/f").delete()  # as if it had not come so far
    ExportVerification.objects.filter(pk=broken_off.pk).update(outcome="outdated", missing=1, named=1)
    run = repaired(w, export)
    assert (run.outcome, run.copied, w.problems(run.ref)) == ("exported-successfully", 2, [])


def test_hooks_that_the_export_never_brought_are_not_removed_as_its_own(w: World) -> None:
    hook = "_lakefs_actions/hook.yaml"
    w.lake.commit(files={hook: b"on: push"})
    export = exported(w)
    w.lake.commit(files={"z": b"9"})
    w.work()
    w.put(f"latest/{hook}", b"on: push")  # somebody's copy of it
    assert look(w, export).foreign == 1
    run = repaired(w, export, remove=True)
    assert (run.outcome, run.deleted) == ("exported-successfully", 0)
    assert w.there()[hook] == b"on: push"


def test_what_belongs_to_others_before_is_nobody_s_to_remove(w: World) -> None:
    """Commits count only since the place is the export's own."""
    export = exported(w)
    first = export.last_success_ref
    w.lake.commit(files={"a": None})
    w.set("s3://out/other")
    w.work()
    second = w.lake.commit(files={"a": b"7"})
    w.set()
    w.work()
    w.lake.commit(files={"a": b"8"})
    w.work()
    assert {first, second} <= set(drift_repairs.commits_brought(Export.objects.get()))  # nobody had it in between
    w.set("s3://out/other")
    w.work()
    w.lake.repository.branches["rival"] = first
    export_delete(actor=w.owner, export=w.set("s3://out/latest", branch="rival", status_path=""))
    w.work()
    w.set()
    w.work()
    assert drift_repairs.commits_brought(Export.objects.get(pk=export.pk)) == []


def test_who_may_and_what_the_api_says(lm: Deployment, api: Api, teammate: User) -> None:
    export = an_export(**DONE)
    path = f"{BRANCH}/export-repair-drift"
    status, answer = api.call("POST", path)
    assert (status, "Verify the destination first" in answer["message"]) == (409, True)
    found = drifted(export)
    assert Api(teammate).call("POST", path)[0] == 403
    with pytest.raises(Denied):
        export_repair_drift(actor=teammate, export=export, remove=False)
    assert api.call("POST", path, {"removeForeign": "perhaps"})[0] == 400
    status, answer = api.call("POST", path, {"removeForeign": True})
    assert (status, answer["repairs"], answer["ref"]) == (202, str(found.pk), export.last_success_ref)
    assert api.call("POST", path)[0] == 409


def test_the_page_asks_before_it_does(lm: Deployment, owner: User, teammate: User) -> None:
    olga = Client()
    olga.force_login(owner)
    export = an_export(**DONE)
    page = f"/exports/{export.pk}/repair-drift/"
    assert "There is nothing to repair" in body(olga, page)
    drifted(export)
    assert 'id="repair-drift"' in body(olga, f"/exports/{export.pk}/")
    text = body(olga, page)
    assert "1 missing file" in text and "=bad" in text and "remove_foreign" in text
    assert not ExportRun.objects.exists()
    answer = olga.post(page, {"remove_foreign": "on"})
    assert answer.status_code == 302
    assert ExportRun.objects.get().repairs_id
    assert "is being repaired" in body(olga, f"/exports/{export.pk}/")
    tom = Client()
    tom.force_login(teammate)
    assert tom.get(page).status_code == tom.post(page).status_code == 403
