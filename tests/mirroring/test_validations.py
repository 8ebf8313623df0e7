"""Checks on demand: everything is looked at from the bytes, damage is told, nothing is moved back."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError

from audit.models import AuditEvent
from core.errors import Conflict, Unreachable
from core.mirroring.object_check import Depth
from core.mirroring.states import State
from jobs.models import Duty
from mirrors.models import Blocker, Coverage, Mirror, Run, Validation, ValidationRange
from mirrors.services.validations import validation_ask
from mirrors.status.mirror import mirror_status
from rbac.models import User
from tests.api import BODY, MIRRORS, Api
from tests.mirrors.harness import NAMESPACE, Deployment, deployment, state_of
from tests.mirrors.kept import once

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def lm() -> Iterator[Deployment]:
    with deployment() as made:
        yield made


@pytest.fixture
def head(request: pytest.FixtureRequest, lm: Deployment) -> str:
    """A commit that was promoted, on another one."""
    return once(request, lm, lambda: on_another_one(lm))


def on_another_one(lm: Deployment) -> str:
    lm.add_mirror()
    lm.lake.commit(files={"old": b"0", "a": b"older"})
    lm.arrive()
    lm.work()
    commit = lm.lake.commit(files={"a": b"1", "b": b"2"})
    lm.arrive()
    lm.work()
    assert lm.head() == commit
    lm.checked.clear()
    return commit


def ask(**what: Any) -> Validation:
    with mock.patch("mirrors.services.validations.require_operation", return_value=("fs:OperateMirror", "*")):
        return validation_ask(actor="system:tests", mirror=Mirror.objects.get(), **what)


def lose(lm: Deployment, commit: str, path: str) -> str:
    uri = f"{NAMESPACE}/{lm.lake.address_of(commit, path)}"
    lm.eu_store.hidden.add(uri)
    return uri


def test_everything_that_a_head_names_is_looked_at_whatever_is_covered(lm: Deployment, head: str) -> None:
    asked = ask(branch="main")
    assert (asked.state, asked.commit, asked.depth) == ("queued", head, "etag")
    lm.work(1)
    asked.refresh_from_db()
    assert asked.state == "done"
    assert (asked.ranges, asked.ranges_done, asked.entries, asked.problems) == (1, 1, 3, 0)
    assert lm.checked == [(lm.lake.files_of(head)[1], [])]
    assert not ValidationRange.objects.exists()
    row = Coverage.objects.get(range_id=lm.lake.files_of(head)[1])
    assert (row.state, row.bases) == ("complete", lm.lake.files_of(lm.lake.repository.commits[head].parents[0])[1:])
    assert row.verify_at > datetime.now(UTC) + timedelta(days=5)
    assert Run.objects.filter(job="validate", outcome="done").count() == 1


def test_what_is_missing_becomes_damage_and_the_branch_stays(lm: Deployment, head: str) -> None:
    lose(lm, head, "b")
    asked = ask(branch="main")
    lm.work()
    asked.refresh_from_db()
    assert (asked.state, asked.problems) == ("done", 1)
    assert set(Blocker.objects.values_list("path", "damage")) == {("b", True)}
    assert (lm.head(), state_of(head).data) == (head, "waiting")
    assert mirror_status(Mirror.objects.get()).state is State.DAMAGED
    lm.eu_store.hidden.clear()
    lm.work()
    assert not Blocker.objects.exists()
    assert mirror_status(Mirror.objects.get()).state is State.UP_TO_DATE


def test_damage_in_what_a_range_was_built_on_is_found_there_too(lm: Deployment, head: str) -> None:
    """Else a new commit of another branch would be built on the older range, and never look at the object."""
    uri = lose(lm, head, "old")
    ask(branch="main")
    lm.work(4)
    assert Blocker.objects.filter(path="old", damage=True).count() == 2
    assert set(Coverage.objects.values_list("state", flat=True)) == {"waiting"}
    first = lm.lake.repository.commits[head].parents[0]
    lm.lake.repository.branches["dev"] = first
    new = lm.lake.commit("dev", files={"c": b"3"})
    lm.arrive()
    lm.eu_store.hidden = {uri}
    lm.work(4)
    assert (state_of(new).data, lm.head("dev")) == ("waiting", "")
    lm.eu_store.hidden.clear()
    lm.work(4)
    assert lm.head("dev") == new
    assert set(Coverage.objects.values_list("state", flat=True)) == {"complete"}


def test_a_range_that_does_not_name_the_damage_is_complete_again(lm: Deployment, head: str) -> None:
    lose(lm, head, "b")
    ask(branch="main")
    lm.work(4)
    states = dict(Coverage.objects.order_by("pk").values_list("range_id", "state"))
    assert list(states.values()) == ["complete", "waiting"]


def test_a_commit_that_is_still_to_be_promoted_waits_for_what_was_lost(lm: Deployment, head: str) -> None:
    uri = lose(lm, head, "b")
    ask(branch="main")
    lm.work()
    new = lm.lake.commit(files={"c": b"3"})
    lm.arrive()
    lm.eu_store.hidden = {uri}
    lm.work()
    assert (lm.head(), state_of(new).data) == (head, "waiting")


@pytest.mark.parametrize("harm", ["lost", "cut short"])
def test_a_metarange_is_read_from_its_bytes(lm: Deployment, head: str, harm: str) -> None:
    uri = f"{NAMESPACE}/_lakefs/{lm.lake.files_of(head)[0]}"
    kept = lm.eu_store.objects[uri]
    if harm == "lost":
        lm.eu_store.hidden.add(uri)
    else:
        lm.eu_store.objects[uri] = kept[:-9]
    asked = ask(commit=head)
    lm.work()
    asked.refresh_from_db()
    assert (asked.state, asked.problems, asked.ranges) == ("done", 1, 0)
    blocker = Blocker.objects.get()
    assert (blocker.kind, blocker.damage) == ("metarange", True)
    assert mirror_status(Mirror.objects.get()).state is State.DAMAGED
    lm.lake.repository.branches["dev"] = new = lm.lake.record_tree((head,), lm.lake.trees[head], "the same data")
    lm.work()
    assert (lm.head("dev"), state_of(new).data) == ("", "waiting")
    lm.eu_store.hidden.clear()
    lm.eu_store.objects[uri] = kept
    lm.work()
    assert not Blocker.objects.exists()
    assert (lm.head(), lm.head("dev")) == (head, new)


def test_a_range_file_that_is_lost_is_damage(lm: Deployment, head: str) -> None:
    uri = f"{NAMESPACE}/_lakefs/{lm.lake.files_of(head)[1]}"
    lm.eu_store.hidden.add(uri)
    asked = ask(branch="main")
    lm.work()
    asked.refresh_from_db()
    assert (asked.state, asked.problems) == ("done", 1)
    assert Blocker.objects.get().damage
    lm.eu_store.hidden.clear()
    lm.work()
    assert not Blocker.objects.exists()


@pytest.mark.parametrize("harm", ["gone", "torn"])
def test_83_a_range_that_no_commit_waits_for_is_whole_again_once_it_is_back(lm: Deployment, harm: str) -> None:
    """What was asked for lies below the history that the mirror needs."""
    lm.add_mirror()
    Mirror.objects.update(history="head")
    old = lm.lake.commit(files={"old": b"0", "a": b"older"})
    head = lm.lake.commit(files={"old": b"1", "a": b"newer"})
    lm.arrive()
    lm.work()
    assert (lm.head(), state_of(old).data) == (head, "unchecked")
    uri = f"{NAMESPACE}/_lakefs/{lm.lake.files_of(old)[1]}"
    kept = lm.eu_store.objects[uri]
    if harm == "gone":
        lm.eu_store.hidden.add(uri)
    else:
        lm.eu_store.objects[uri] = kept[:-8]
    ask(commit=old)
    lm.small_checks = True
    lm.work()
    assert Blocker.objects.get().kind == "range"
    lm.eu_store.hidden.clear()
    lm.eu_store.objects[uri] = kept
    lm.work(4)
    assert not Blocker.objects.exists()
    assert lm.head() == head


def test_a_deeper_check_finds_more_and_its_finds_are_looked_for_as_deep(lm: Deployment, head: str) -> None:
    Mirror.objects.update(depth="presence")
    Coverage.objects.update(depth="presence")
    uri = f"{NAMESPACE}/{lm.lake.address_of(head, 'b')}"
    lm.eu_store.objects[uri] = b"9"
    plain = ask(branch="main")
    lm.work()
    plain.refresh_from_db()
    assert (plain.state, plain.problems) == ("done", 0)
    deep = ask(branch="main", depth=Depth.ETAG)
    lm.work(4)
    deep.refresh_from_db()
    assert (deep.state, deep.problems) == ("done", 1)
    assert Blocker.objects.get().reason == "etag-differs"
    shallow = ask(branch="main")
    lm.work()
    shallow.refresh_from_db()
    assert (shallow.state, Blocker.objects.count()) == ("done", 1)
    lm.eu_store.objects[uri] = b"2"
    lm.work()
    assert not Blocker.objects.exists()
    assert set(Coverage.objects.values_list("state", "depth", "deeper")) == {("complete", "presence", "")}
    assert lm.head() == head


def test_what_a_deeper_check_found_wrong_stays_so_for_others_that_see_it_arrive(lm: Deployment, head: str) -> None:
    Mirror.objects.update(depth="presence", history="head")
    Coverage.objects.update(depth="presence")
    uri = lose(lm, head, "b")
    ask(branch="main", depth=Depth.ETAG)
    lm.work()
    newer = lm.lake.commit(files={"c": b"3"})
    lm.arrive()
    lm.eu_store.hidden.add(uri)
    lm.work()
    assert sorted(Blocker.objects.values_list("reason", flat=True)) == ["missing", "missing"]
    lm.eu_store.objects[uri] = b"9"
    lm.eu_store.hidden.discard(uri)
    lm.work()
    assert lm.head() == head
    assert set(Blocker.objects.values_list("reason", flat=True)) == {"etag-differs"}
    lm.eu_store.objects[uri] = b"2"
    lm.work()
    assert (lm.head(), Blocker.objects.count()) == (newer, 0)


def test_a_lesser_check_proves_nothing_complete(lm: Deployment, head: str) -> None:
    uri = f"{NAMESPACE}/{lm.lake.address_of(head, 'b')}"
    lm.eu_store.objects[uri] = b"9"
    ask(branch="main")
    lm.work()
    assert Blocker.objects.get().reason == "etag-differs"
    lesser = ask(branch="main", depth=Depth.PRESENCE)
    lm.work()
    lesser.refresh_from_db()
    assert (lesser.state, lesser.problems) == ("done", 0)
    assert Blocker.objects.get().reason == "etag-differs"
    lose(lm, head, "a")
    ask(branch="main", depth=Depth.PRESENCE)
    lm.work()
    assert set(Blocker.objects.values_list("path", flat=True)) == {"a", "b"}


def test_a_lesser_check_renews_nothing(lm: Deployment, head: str) -> None:
    before = list(Coverage.objects.values_list("pk", "checked_at", "verify_at", "depth"))
    asked = ask(depth=Depth.SIZE)
    lm.work()
    asked.refresh_from_db()
    assert (asked.state, asked.entries, asked.problems) == ("done", 3, 0)
    assert list(Coverage.objects.values_list("pk", "checked_at", "verify_at", "depth")) == before


def test_what_is_gone_at_both_sides_stays_known_as_such(lm: Deployment, head: str) -> None:
    first = lm.lake.repository.commits[head].parents[0]
    lose(lm, first, "a")
    del lm.us_store.objects[f"s3://src/lake/{lm.lake.address_of(first, 'a')}"]
    ask(commit=first)
    lm.work()
    gone = Coverage.objects.get(state="gone")
    assert mirror_status(Mirror.objects.get()).state is State.UP_TO_DATE
    asked = ask(commit=first)
    lm.work(1, look=False)
    asked.refresh_from_db()
    assert (asked.state, asked.problems) == ("done", 1)
    gone.refresh_from_db()
    assert (gone.state, lm.head()) == ("gone", head)


def test_all_heads_are_checked_each_range_once(lm: Deployment, head: str) -> None:
    lm.lake.repository.branches["same"] = head
    lm.lake.repository.branches["dev"] = head
    other = lm.lake.commit("dev", files={"c": b"3"})
    lm.arrive()
    lm.work()
    lm.checked.clear()
    asked = ask()
    lm.work()
    asked.refresh_from_db()
    assert (asked.what, asked.commit, asked.ranges_done, asked.entries) == ("all", "", 2, 7)
    assert sorted(range_id for range_id, _ in lm.checked) == sorted(
        [*lm.lake.files_of(head)[1:], *lm.lake.files_of(other)[1:]]
    )


def test_an_empty_commit_is_done_at_once(lm: Deployment, head: str) -> None:
    root = lm.lake.repository.commits[lm.lake.repository.commits[head].parents[0]].parents[0]
    asked = ask(commit=root)
    lm.work(1)
    asked.refresh_from_db()
    assert (asked.state, asked.ranges, asked.problems) == ("done", 0, 0)


def many_heads(lm: Deployment, number: int = 4) -> None:
    for n in range(number):
        lm.lake.repository.branches[f"b{n}"] = lm.lake.repository.branches["main"]
        lm.lake.commit(f"b{n}", files={f"f{n}": b"x"})
    lm.arrive()
    lm.work()
    lm.checked.clear()


def test_a_round_does_its_share_and_a_killed_worker_loses_nothing(lm: Deployment, head: str) -> None:
    many_heads(lm)
    asked = ask()
    duty = Duty.objects.get(kind="validate").pk
    with (
        mock.patch("mirroring.validate.on_demand.METARANGES", 2),
        mock.patch("mirroring.validate.on_demand.BATCH", 2),
    ):
        lm.run(duty)
        asked.refresh_from_db()
        assert (asked.state, len(asked.metaranges), asked.ranges, asked.ranges_done) == ("running", 3, 2, 0)
        assert Duty.objects.get(pk=duty).due_at <= datetime.now(UTC)
        lm.run(duty)
        lm.run(duty)
        asked.refresh_from_db()
        assert (len(asked.metaranges), asked.ranges, asked.ranges_done) == (0, 5, 2)
        with (
            mock.patch("mirroring.validate.on_demand.reopen", side_effect=KeyboardInterrupt),
            pytest.raises(KeyboardInterrupt),
        ):
            lm.run(duty)
        asked.refresh_from_db()
        assert (asked.ranges_done, asked.left.count()) == (2, 3)
        Duty.objects.update(until=None)
        lm.run(duty)
        lm.run(duty)
    asked.refresh_from_db()
    assert (asked.state, asked.ranges_done, asked.entries) == ("done", 5, 3 + 4 * 4)


def test_new_commits_go_first_and_nobody_starves(lm: Deployment, head: str) -> None:
    many_heads(lm)
    asked = ask()
    duty = Duty.objects.get(kind="validate").pk
    with mock.patch("mirroring.validate.on_demand.BATCH", 1):
        for n in range(5):
            new = lm.lake.commit(files={f"new{n}": b"n"})
            lm.arrive()
            for other in Duty.objects.filter(kind__in=["sense", "copy"]):
                lm.run(other.pk)
            lm.checked.clear()
            lm.run(duty)
            assert lm.checked[0][0] == lm.lake.files_of(new)[1]
            assert len(lm.checked) == 2
            assert state_of(new).data == "complete"
    asked.refresh_from_db()
    assert asked.state == "done"


def test_a_store_that_is_away_says_nothing_and_it_goes_on_later(lm: Deployment, head: str) -> None:
    asked = ask(branch="main")
    lm.check_error = Unreachable("away")
    with mock.patch("tests.mirrors.harness.check_plainly", lambda *_: []):
        lm.work(1)
    asked.refresh_from_db()
    assert (asked.state, asked.error, asked.ranges_done) == ("retrying", "away", 0)
    assert Duty.objects.get(kind="validate").failures == 1
    lm.check_error = None
    lm.work(1)
    asked.refresh_from_db()
    assert (asked.state, asked.error) == ("done", "")


def test_one_that_fails_lets_others_go_first(lm: Deployment, head: str) -> None:
    failing = ask(branch="main")
    lm.check_error = Unreachable("away")
    with mock.patch("tests.mirrors.harness.check_plainly", lambda *_: []):
        lm.work(1)
    lm.check_error = None
    other = ask(commit=head)
    lm.run(Duty.objects.get(kind="validate").pk)
    other.refresh_from_db()
    failing.refresh_from_db()
    assert (other.state, failing.state) == ("done", "retrying")


def test_the_same_asked_twice_is_one_job_until_the_branch_moves(lm: Deployment, head: str) -> None:
    asked = ask(branch="main")
    assert ask(branch="main").pk == asked.pk
    assert ask(branch="main", depth=Depth.SIZE).pk != asked.pk
    assert ask(commit=head).pk != asked.pk
    assert ask().pk != asked.pk
    lm.work()
    assert ask(branch="main").pk != asked.pk


def test_a_mirror_that_goes_meanwhile_is_a_conflict(lm: Deployment, head: str) -> None:
    with (
        mock.patch("mirroring.validate.on_demand.Validation.save", side_effect=IntegrityError),
        pytest.raises(Conflict),
    ):
        ask(branch="main")


# The API, and the command


@pytest.fixture
def api(owner: User, lm: Deployment) -> Api:
    api = Api(owner)
    api.call("POST", MIRRORS, BODY)
    lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.work()
    return api


def test_a_validation_is_asked_for_and_followed(api: Api, lm: Deployment) -> None:
    status, job = api.call("POST", f"{MIRRORS}/lake-eu/validate", {"branch": "main", "depth": "content"})
    assert (status, job["state"], job["depth"], job["commit"]) == (202, "queued", "content", lm.head())
    assert api.call("POST", f"{MIRRORS}/lake-eu/validate", {"branch": "main", "depth": "content"})[1]["id"] == job["id"]
    assert AuditEvent.objects.filter(after__validate="lake-eu", actor="olga").count() == 2
    lm.work()
    status, done = api.call("GET", f"{MIRRORS}/lake-eu/validations/{job['id']}")
    assert (status, done["state"], done["ranges"], done["ranges_done"], done["entries"]) == (200, "done", 1, 1, 1)
    assert done["started_at"] <= done["ended_at"]
    assert (done["problems"], done["asked_by"]) == (0, "olga")
    api.call("POST", f"{MIRRORS}/lake-eu/validate", {"all": True})
    listed = api.call("GET", f"{MIRRORS}/lake-eu/validations?amount=1")[1]
    assert [one["what"] for one in listed["results"]] == ["all"]
    rest = api.call("GET", f"{MIRRORS}/lake-eu/validations?after={listed['pagination']['next_offset']}")[1]
    assert [one["id"] for one in rest["results"]] == [job["id"]]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ([], 400),
        ({"branch": "main", "all": True}, 400),
        ({"all": False}, 400),
        ({"branch": "main", "depth": "deep"}, 400),
        ({"branch": "main", "deep": "content"}, 400),
        ({"commit": "abc"}, 400),
        ({"commit": "0" * 64}, 404),
        ({"branch": "nowhere"}, 404),
    ],
)
def test_what_is_to_be_validated_has_to_be_said(api: Api, body: Any, status: int) -> None:
    assert api.call("POST", f"{MIRRORS}/lake-eu/validate", body)[0] == status
    assert not Validation.objects.exists()


def test_outsiders_ask_for_nothing_and_see_nothing(api: Api, outsider: User) -> None:
    assert Api(outsider).call("POST", f"{MIRRORS}/lake-eu/validate", {"all": True})[0] == 403
    assert Api(outsider).call("GET", f"{MIRRORS}/lake-eu/validations/1")[0] == 403
    assert api.call("GET", f"{MIRRORS}/lake-eu/validations/{10**30}")[0] == 404


def test_a_mirror_without_branches_has_nothing_to_validate(api: Api) -> None:
    api.call("POST", MIRRORS, BODY | {"name": "lake-new", "storage_namespace": "s3://dst/new"})
    assert api.call("POST", f"{MIRRORS}/lake-new/validate", {"all": True})[0] == 409


def test_the_command_waits_and_tells(api: Api, lm: Deployment) -> None:
    told = io.StringIO()
    with mock.patch("time.sleep", lambda _: lm.work(1)):
        call_command("validate", "lake-eu", "--wait", "--actor", "olga", stdout=told)
        assert "depth etag: queued" in told.getvalue()
        assert "1 entry, 0 problems" in told.getvalue()
        lose(lm, lm.head(), "a")
        with pytest.raises(CommandError, match="1 problem"):
            call_command("validate", "lake-eu", "--branch", "main", "--wait", "--actor", "olga", stdout=told)
    with pytest.raises(CommandError, match="no mirror"):
        call_command("validate", "elsewhere", stdout=told)
