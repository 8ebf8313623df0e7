"""Changing the settings of a mirror: by the API, and what follows for what was judged before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import pytest

from audit.models import AuditEvent
from core.errors import Denied, Invalid, NotFound
from core.mirroring.states import State
from jobs.models import Duty
from mirrors.api.serializers import MirrorSettings
from mirrors.models import Blocker, Coverage, Mirror, MirrorBranch, Promotion
from mirrors.queries.certificates import parse_descriptor
from mirrors.queries.duties import OF_A_MIRROR, OF_A_SOURCE
from mirrors.services.settings import SETTINGS, mirror_update
from mirrors.status.mirror import mirror_status
from rbac.models import User
from tests.api import Api
from tests.mirrors.harness import NAMESPACE, Deployment, state_of

pytestmark = pytest.mark.django_db(transaction=True)

MIRROR = "/service/replication/v1/repositories/lake/mirrors/lake-eu"
VERBS = [("PATCH", MIRROR), *(("POST", f"{MIRROR}/{verb}") for verb in ("pause", "resume", "sync"))]


def change(owner: User, **changes: Any) -> Mirror:
    return mirror_update(actor=owner, mirror=Mirror.objects.select_related("source").get(), changes=changes)


# --- the API ----------------------------------------------------------------------------------------------------------


def test_every_setting_has_its_field_and_what_follows() -> None:
    assert {field.source or name for name, field in MirrorSettings().fields.items()} == set(SETTINGS)


@pytest.mark.parametrize(
    ("field", "value", "column"),
    [
        ("paused", True, "paused"),
        ("validation_depth", "content", "depth"),
        ("content_sample", 0.25, "content_sample"),
        ("content_sample", 1, "content_sample"),
        ("imported", "allow", "imported"),
        ("first_sync", "inferred", "first_sync"),
        ("repair_tampering", "auto", "repair_tampering"),
        ("rpo_seconds", 60, "rpo_seconds"),
    ],
)
def test_a_setting_is_changed_shown_audited_and_told_to_the_destination(
    api: Api, lm: Deployment, head: str, field: str, value: Any, column: str
) -> None:
    Mirror.objects.update(content_sample=0.5)
    before = getattr(Mirror.objects.get(), column)
    status, shown = api.call("PATCH", MIRROR, {field: value})
    assert (status, shown[field]) == (200, value)
    assert api.call("GET", MIRROR)[1][field] == value
    action = "fs:OperateMirror" if field == "paused" else "fs:MirrorRepository"
    event = AuditEvent.objects.get(actor="olga", action=action, subject="mirror/lake-eu")
    assert (event.before, event.after) == (
        {"mirror": "lake-eu", column: before},
        {"mirror": "lake-eu", column: value},
    )
    lm.run(Duty.objects.get(kind="manage").pk)
    told = parse_descriptor(lm.eu_store.objects[f"{NAMESPACE}/_lakemirror/mirror.json"])
    assert (told.pause is not None if column == "paused" else getattr(told, column)) == value


def test_what_is_so_already_is_no_change(api: Api, lm: Deployment) -> None:
    for body in ({}, {"paused": False, "validation_depth": "etag"}):
        assert api.call("PATCH", MIRROR, body)[0] == 200
    assert not AuditEvent.objects.filter(subject="mirror/lake-eu", refused=False).exists()


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"paused": "yes"}, "paused"),
        ({"paused": 1}, "paused"),
        ({"paused": None}, "paused"),
        ({"validation_depth": "deep"}, "validation_depth"),
        ({"validation_depth": None}, "validation_depth"),
        ({"validation_depth": ["etag"]}, "validation_depth"),
        ({"depth": "etag"}, "depth"),
        ({"content_sample": 0}, "content_sample"),
        ({"content_sample": True}, "content_sample"),
        ({"content_sample": "0.5"}, "content_sample"),
        ({"content_sample": 1.5}, "content_sample"),
        ({"imported": "copy"}, "imported"),
        ({"first_sync": "soon"}, "first_sync"),
        ({"repair_tampering": True}, "repair_tampering"),
        ({"name": "other"}, "name"),
        ({"colour": "blue", "paused": True}, "colour"),
        ([], "dictionary"),
        ("{", "JSON"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_is_changed(api: Api, lm: Deployment, body: Any, says: str) -> None:
    status, answer = api.call("PATCH", MIRROR, body)
    assert status == 400
    assert says in answer["message"]
    assert not Mirror.objects.get().paused


@pytest.mark.parametrize(("method", "path"), VERBS)
def test_who_may_not_is_told_the_right_and_a_mirror_that_is_none_is_not_found(
    api: Api, outsider: User, teammate: User, lm: Deployment, method: str, path: str
) -> None:
    for user in (outsider, teammate):
        status, answer = Api(user).call(method, path, {})
        assert status == 403
        right = "fs:MirrorRepository" if method == "PATCH" else "fs:OperateMirror"
        assert f"{right} on arn:lakefs:fs:::repository/lake" in answer["message"]
    for other in (path.replace("lake-eu", "lake-us"), path.replace("/lake/", "/pond/")):
        assert api.call(method, other, {})[0] == 404
    Mirror.objects.update(state="deleting")
    assert api.call(method, path, {})[0] == 404


def test_pause_and_resume_are_calls_of_their_own(api: Api, lm: Deployment) -> None:
    assert [api.call("POST", f"{MIRROR}/pause") for _ in range(2)][1][1]["paused"] is True
    assert Mirror.objects.get().paused
    status, shown = api.call("POST", f"{MIRROR}/resume")
    assert (status, shown["paused"], Mirror.objects.get().paused) == (200, False, False)


def test_sync_makes_everything_due_now(api: Api, lm: Deployment, head: str) -> None:
    later = datetime.now(UTC) + timedelta(minutes=5)
    Duty.objects.update(due_at=later)
    assert api.call("POST", f"{MIRROR}/sync")[0] == 202
    assert set(Duty.objects.filter(due_at__lt=later).values_list("kind", flat=True)) == {*OF_A_MIRROR, *OF_A_SOURCE}


def test_a_mirror_is_made_with_the_settings_that_are_given(api: Api, lm: Deployment) -> None:
    Duty.objects.all().delete()
    Mirror.objects.all().delete()
    body = {"name": "lake-eu", "region": "eu-west-1", "storage_namespace": NAMESPACE, "paused": True}
    body |= {"first_sync": "inferred", "repair_tampering": "auto"}
    status, made = api.call("POST", MIRROR.removesuffix("/lake-eu"), body)
    assert (status, made["paused"], made["validation_depth"]) == (201, True, "etag")
    assert (made["first_sync"], made["repair_tampering"]) == ("inferred", "auto")


def test_the_service_asks_for_the_right_itself(owner: User, teammate: User, lm: Deployment) -> None:
    with pytest.raises(Denied):
        change(teammate, paused=True)
    with pytest.raises(Invalid, match="colour"):
        change(owner, colour="blue")
    Mirror.objects.update(state="deleting")
    with pytest.raises(NotFound):
        change(owner, paused=True)


# --- a pause ----------------------------------------------------------------------------------------------------------


def test_nothing_moves_in_a_pause_and_all_else_goes_on(owner: User, lm: Deployment, head: str) -> None:
    change(owner, paused=True)
    newer = lm.lake.commit(files={"c": b"3"})
    lm.arrive()
    lm.work()
    assert (lm.head(), state_of(newer).data, state_of(newer).record) == (head, "complete", "accepted")
    assert mirror_status(Mirror.objects.get()).state is State.PAUSED
    Duty.objects.update(due_at=datetime.now(UTC) + timedelta(minutes=5))
    change(owner, paused=False)
    assert Duty.objects.get(kind="promote").due_at < datetime.now(UTC) + timedelta(seconds=1)
    lm.work(1)
    assert lm.head() == newer


def test_a_pause_ends_a_round_that_is_under_way(owner: User, lm: Deployment, head: str) -> None:
    for number in range(3):
        lm.lake.repository.branches[f"b{number}"] = head
    plain = lm.eu.create_branch

    def create(*args: str, **options: bool) -> None:
        plain(*args, **options)
        change(owner, paused=True)

    with mock.patch.object(lm.eu, "create_branch", create):
        lm.work(2)
    assert [bool(lm.head(f"b{number}")) for number in range(3)] == [True, False, False]


# --- how deep ---------------------------------------------------------------------------------------------------------


def waiting_head(lm: Deployment, **files: bytes) -> str:
    """A commit that is complete, and not promoted yet."""
    Mirror.objects.update(paused=True)
    commit = lm.lake.commit(files=files)
    lm.arrive()
    lm.work()
    assert state_of(commit).data == "complete"
    Mirror.objects.update(paused=False)
    lm.checked.clear()
    return commit


@pytest.mark.parametrize(
    ("before", "changes"),
    [
        ({"depth": "size"}, {"depth": "etag"}),
        ({"depth": "content", "content_sample": 0.5}, {"content_sample": 1.0}),
        ({"imported": "allow"}, {"imported": "block"}),
    ],
)
def test_a_head_is_not_promoted_by_a_check_that_asked_for_less(
    owner: User, lm: Deployment, before: dict[str, Any], changes: dict[str, Any]
) -> None:
    Mirror.objects.update(**before)
    first = lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.work()
    head = waiting_head(lm, b=b"2")
    change(owner, **changes)
    assert (state_of(head).data, state_of(first).data) == ("unknown", "unknown")
    assert not MirrorBranch.objects.get().proven
    lm.run(Duty.objects.get(kind="promote").pk)
    assert lm.head() == first
    lm.work(1)
    both = [(lm.lake.files_of(commit)[1], []) for commit in (first, head)]
    assert lm.checked == both, "once, and on nothing that was checked for less"
    assert lm.head() == head


def test_what_a_deeper_look_finds_holds_the_head(owner: User, lm: Deployment) -> None:
    Mirror.objects.update(depth="presence")
    lm.work()
    root = lm.head()
    head = waiting_head(lm, a=b"good")
    lm.eu_store.put(f"{NAMESPACE}/{lm.lake.address_of(head, 'a')}", b"evil")
    change(owner, depth="etag")
    lm.work()
    assert (lm.head(), Blocker.objects.get().reason) == (root, "etag-differs")
    change(owner, depth="size")
    lm.work()
    assert lm.head() == head
    assert Coverage.objects.get().depth == "size", "what it passed by in the end"
    later = lm.lake.commit(files={})
    lm.arrive()
    change(owner, depth="etag")
    lm.work()
    assert lm.head() == head
    assert state_of(later).data == "waiting"


def test_a_less_deep_look_needs_no_new_check(owner: User, lm: Deployment) -> None:
    lm.work()
    head = waiting_head(lm, a=b"1")
    change(owner, depth="presence")
    lm.work()
    assert (lm.head(), lm.checked) == (head, [])


def test_ancestors_that_no_branch_shows_are_judged_anew_too(owner: User, lm: Deployment, head: str) -> None:
    Mirror.objects.update(paused=True)
    lm.lake.repository.branches["dev"] = head
    side = lm.lake.commit("dev", {"d": b"1"})
    merged = lm.lake.merge("dev")
    del lm.lake.repository.branches["dev"]
    lm.arrive()
    lm.work()
    root = lm.lake.repository.commits[head].parents[0]
    change(owner, depth="content")
    assert {(state_of(sha).data, state_of(sha).history) for sha in (root, head, side, merged)} == {("unknown", False)}
    lm.work()
    assert {(state_of(sha).data, state_of(sha).history) for sha in (root, head, side, merged)} == {("complete", True)}


def test_a_judgement_by_the_settings_of_before_is_not_written_down(owner: User, lm: Deployment) -> None:
    """The settings are changed while the check is under way: before its first rows, and after its last ones."""
    lm.work()
    root, plain = lm.head(), lm.run_check
    for early in (True, False):
        head = lm.lake.commit()
        lm.arrive()
        Mirror.objects.update(depth="size")

        def check(mirror: Mirror, work: Any, on_rows: Any, early: bool = early) -> None:
            if early:
                change(owner, depth="etag")
            plain(mirror, work, on_rows)
            if not early:
                change(owner, depth="etag")

        lm.run(Duty.objects.get(kind="sense").pk)
        with mock.patch("deployment.wiring.check_jobs.run_check", check):
            lm.run(Duty.objects.get(kind="validate").pk)
        assert "changed meanwhile" in Duty.objects.get(kind="validate").outcome
        assert state_of(head).data == "unknown"
        lm.run(Duty.objects.get(kind="promote").pk)
        assert lm.head() == root
        lm.work()
        assert lm.head() == head
        root = head


def test_what_is_shown_is_checked_by_the_new_depth_at_once(owner: User, lm: Deployment, head: str) -> None:
    change(owner, depth="content")
    assert not MirrorBranch.objects.get().proven
    lm.work(1)
    assert lm.checked == [(lm.lake.files_of(head)[1], [])]
    assert Coverage.objects.get().depth == "content"
    assert (lm.head(), MirrorBranch.objects.get().proven) == (head, True)


# --- imported ---------------------------------------------------------------------------------------------------------


def imported(lm: Deployment, head: str) -> None:
    """The head's range as a check at `imported: block` leaves it, when it names an object that lies elsewhere."""
    range_id, uri = lm.lake.files_of(head)[1], "s3://elsewhere/a"
    now, mirror = datetime.now(UTC), Mirror.objects.get()
    mirror.coverage.filter(range_id=range_id).update(state="waiting", problems=1, verify_at=None)
    far = {"kind": "object", "holder_id": range_id, "key": "k", "address": uri, "size": 1, "etag": ""}
    mirror.blockers.create(**far, reason="imported", damage=True, attempts=3, first_seen=now, look_at=now)
    lm.eu_store.put(uri, b"1")


def test_imported_objects_are_looked_for_once_they_are_allowed(owner: User, lm: Deployment, head: str) -> None:
    imported(lm, head)
    lm.work()
    assert Blocker.objects.get().reason == "imported"
    Blocker.objects.update(look_at=datetime.now(UTC) + timedelta(hours=1))
    change(owner, imported="allow")
    lm.run(Duty.objects.get(kind="validate").pk)
    assert not Blocker.objects.exists()
    assert Coverage.objects.get().state == "complete"


def test_imported_objects_of_what_is_shown_are_no_damage(lm: Deployment, head: str) -> None:
    imported(lm, head)
    reading = mirror_status(Mirror.objects.get())
    assert (reading.state, reading.waiting) == (State.UP_TO_DATE, 1)


def test_branches_stay_where_imported_objects_are_barred(owner: User, lm: Deployment, head: str) -> None:
    Mirror.objects.update(imported="allow")
    change(owner, imported="block")
    before = Promotion.objects.count()
    lm.work()
    assert (lm.head(), Promotion.objects.count()) == (head, before)
    assert mirror_status(Mirror.objects.get()).state is State.UP_TO_DATE
