"""Situations that meet: what each of two rules allows for itself must not leave a reader with a torn commit."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import pytest

from core.errors import RemoteFailure, Unreachable
from core.mirroring.branch_selection import OnUnselect
from core.mirroring.object_check import Depth
from jobs.models import Duty
from mirrors.models import Blocker, Coverage, Mirror, MirrorBranch, Promotion
from mirrors.services.settings import mirror_update
from mirrors.services.validations import validation_ask
from tests.fakes import check_plainly
from tests.mirrors.harness import NAMESPACE, Deployment, state_of

pytestmark = pytest.mark.django_db(transaction=True)


def age(*commits: str, lm: Deployment) -> None:
    """The time of these commits' ranges has come."""
    ids = [one for commit in commits for one in lm.lake.files_of(commit)[1:]]
    Coverage.objects.filter(range_id__in=ids).update(verify_at=datetime.now(UTC) - timedelta(seconds=1))


def uri_of(lm: Deployment, commit: str, path: str) -> str:
    return f"{NAMESPACE}/{lm.lake.address_of(commit, path)}"


def lose(lm: Deployment, commit: str, *paths: str) -> None:
    lm.eu_store.hidden |= {uri_of(lm, commit, path) for path in paths}


def mirrored(lm: Deployment, branch: str = "main", **files: Any) -> str:
    commit = lm.lake.commit(branch, files)
    lm.arrive()
    lm.work()
    return commit


def change(**settings: Any) -> None:
    either = mock.patch("mirrors.services.rights.rbac.require_any", return_value=("fs:OperateMirror", "*"))
    with mock.patch("mirrors.services.settings.rbac.require"), either:
        mirror_update(actor="system:tests", mirror=Mirror.objects.get(), changes=settings)


def ask(**what: Any) -> None:
    with mock.patch("mirrors.services.validations.require_operation", return_value=("fs:OperateMirror", "*")):
        validation_ask(actor="system:tests", mirror=Mirror.objects.get(), **what)


def branches(lm: Deployment) -> dict[str, str]:
    return lm.eu.repositories["lake-eu"].branches


@pytest.fixture
def two(lm: Deployment) -> tuple[str, str]:
    """Two commits, the second one's range built on the first one's; of ancestors only records are asked."""
    Mirror.objects.update(history="head")
    first = mirrored(lm, a=b"1", b=b"2")
    second = mirrored(lm, c=b"3")
    assert Coverage.objects.order_by("pk").last().bases == lm.lake.files_of(first)[1:]
    return first, second


def test_a_range_that_is_verified_beside_its_damaged_base_is_not_proven(lm: Deployment, two: tuple[str, str]) -> None:
    first, second = two
    lose(lm, first, "a")
    age(first, second, lm=lm)
    lm.work(1)
    lm.lake.repository.branches["new"] = second
    lm.work(1)
    assert "new" not in branches(lm)


def test_what_is_missing_without_a_name_counts_against_ranges_that_share_it(
    lm: Deployment, two: tuple[str, str]
) -> None:
    first, _ = two
    third = mirrored(lm, a=None)
    lose(lm, first, "a", "b")
    age(first, lm=lm)
    with (
        mock.patch("mirroring.validate.run_check.KEPT_PER_HOLDER", 1),
        mock.patch("mirroring.validate.doubt_new_coverage.KEPT_PER_HOLDER", 1),
        mock.patch("mirrors.transitions.range_states.KEPT_PER_HOLDER", 1),
    ):
        lm.work(1)
        lm.lake.repository.branches["new"] = third
        lm.work(3)
    assert "new" not in branches(lm)


def test_what_is_missing_without_a_name_counts_against_what_is_verified_beside_it(
    lm: Deployment, two: tuple[str, str]
) -> None:
    first, _ = two
    third = mirrored(lm, a=None)
    lose(lm, first, "a", "b")
    age(first, third, lm=lm)
    with (
        mock.patch("mirroring.validate.run_check.KEPT_PER_HOLDER", 1),
        mock.patch("mirroring.validate.doubt_new_coverage.KEPT_PER_HOLDER", 1),
        mock.patch("mirrors.transitions.range_states.KEPT_PER_HOLDER", 1),
    ):
        lm.work(1)
        lm.lake.repository.branches["new"] = third
        lm.work(3)
        assert "new" not in branches(lm)
        checked = len(lm.checked)
        lm.work(2)
        assert len(lm.checked) == checked, "it comes to an end"


def test_what_is_known_to_be_missing_is_not_forgotten_while_ranges_stand_in_question(lm: Deployment) -> None:
    lm.lake.repository.branches["t"] = lm.lake.repository.branches["main"]
    a = mirrored(lm, a=b"1")
    mirrored(lm, "t", t=b"2")
    lose(lm, a, "a")
    held = set(lm.eu_store.hidden)
    lm.lake.merge("main", "t")
    lm.arrive()
    lm.eu_store.hidden = held
    with mock.patch("mirroring.validate.commits.resolve_doubts", side_effect=[0, Unreachable("the worker died")]):
        lm.work(1)
    assert Coverage.objects.to_read().exists()
    change(selected={"include": ["*"], "exclude": ["t"]})
    lm.lake.repository.branches["new"] = a
    lm.work(2)
    assert "new" not in branches(lm)


def test_a_lost_range_file_does_not_make_its_missing_objects_forgotten(lm: Deployment, two: tuple[str, str]) -> None:
    first, second = two
    lose(lm, first, "a")
    age(first, lm=lm)
    with mock.patch("mirroring.validate.resolve_doubt.BATCH", 0):
        lm.work(1)
        lm.eu_store.hidden.add(f"{NAMESPACE}/_lakefs/{lm.lake.files_of(first)[1]}")
        ask(commit=first)
        lm.work(1)
    lm.lake.repository.branches["new"] = second
    lm.work(2)
    assert "new" not in branches(lm)


@pytest.mark.parametrize("weeks", [0, 2])
def test_82_what_was_lost_while_a_range_waited_for_something_else_is_found_when_that_comes(
    lm: Deployment, two: tuple[str, str], weeks: int
) -> None:
    """Nobody looks at a range again that waits, nor any more at what it is built on once that file is lost."""
    _, second = two
    lose(lm, second, "c")
    age(second, lm=lm)
    lm.work(1)
    lose(lm, second, "a")
    lm.eu_store.hidden.add(f"{NAMESPACE}/_lakefs/{Coverage.objects.get(state='complete').range_id}")
    age(two[0], lm=lm)
    lm.work(1)
    Coverage.objects.update(checked_at=datetime.now(UTC) - timedelta(weeks=weeks))
    lm.eu_store.hidden.remove(uri_of(lm, second, "c"))
    lm.work(2)
    assert MirrorBranch.objects.get().proven is (weeks == 0)  # what was seen within the week counts
    named = set(Blocker.objects.filter(kind="object").values_list("address", flat=True))
    assert (lm.lake.address_of(second, "a") in named) is (weeks > 0)


def test_what_only_a_deeper_look_sees_is_not_forgotten_with_new_settings(lm: Deployment) -> None:
    Mirror.objects.update(depth="size", imported="allow")
    a = mirrored(lm, a=b"1")
    lm.eu_store.objects[uri_of(lm, a, "a")] = b"x"
    ask(commit=a, depth=Depth.ETAG)
    lm.work(1)
    assert Blocker.objects.get().reason == "etag-differs"
    change(imported="block")
    lm.lake.repository.branches["new"] = a
    lm.work(3)
    assert "new" not in branches(lm)
    assert not MirrorBranch.objects.get(name="main").proven


def test_a_check_of_the_repository_before_proves_nothing_of_the_one_made_anew(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    there = lm.eu.repositories["lake-eu"]

    def check(mirror: Mirror, work: Any, on_rows: Any) -> None:
        rows = list(check_plainly(lm.eu_store, mirror.storage_namespace, mirror.depth, work))
        there.info = replace(there.info, creation_date=there.info.creation_date + 9)
        there.branches.clear()
        there.commits.clear()
        lm.eu_store.hidden |= {uri for uri in lm.eu_store.objects if "/data/" in uri}
        lm.run(Duty.objects.get(kind="manage").pk)
        on_rows(rows)

    new = lm.lake.commit(files={"b": b"2", "a": None})
    lm.arrive()
    Mirror.objects.update(history="head")
    with mock.patch("deployment.wiring.check_jobs.run_check", check):
        lm.work(1)
    lm.work(2)
    assert branches(lm).get("main") != new


def test_what_was_proven_at_another_store_moves_nothing(lm: Deployment) -> None:
    a = mirrored(lm, a=b"1")
    change(paused=True)
    b = mirrored(lm, b=b"2")
    assert state_of(b).data == "complete"
    change(paused=False)
    with mock.patch("deployment.wiring.region_settings.store_identity", lambda region: "http://elsewhere"):
        lm.eu_store.hidden |= set(lm.eu_store.objects)
        lm.run(Duty.objects.get(kind="promote").pk)
    assert lm.head() == a


def test_a_tag_that_a_dead_worker_made_follows_the_sources(lm: Deployment) -> None:
    Mirror.objects.update(tags=True)
    a, b = mirrored(lm, a=b"1"), mirrored(lm, b=b"2")
    lm.lake.repository.tags["v1"] = a
    with mock.patch("mirroring.promote.tags.TagRef.read_back", side_effect=Unreachable("the worker died")):
        lm.work(1)
    assert lm.eu.repositories["lake-eu"].tags == {"v1": a}
    lm.lake.repository.tags["v1"] = b
    lm.work(2)
    assert lm.eu.repositories["lake-eu"].tags == {"v1": b}
    assert not Promotion.objects.filter(is_tag=True, why="moved-by-somebody").exists()


def test_a_tag_is_judged_right_before_it_is_made(lm: Deployment) -> None:
    Mirror.objects.update(tags=True)
    a, b = mirrored(lm, a=b"1"), mirrored(lm, b=b"2")
    lm.lake.repository.tags["v1"] = a
    lm.work(1)
    lm.lake.repository.tags["v1"] = b
    delete = lm.eu.delete_tag

    def found_meanwhile(*given: str) -> None:
        delete(*given)
        lose(lm, b, "b")
        age(b, lm=lm)
        lm.run(Duty.objects.get(kind="validate").pk)

    with mock.patch.object(lm.eu, "delete_tag", found_meanwhile):
        lm.work(1)
    assert lm.eu.repositories["lake-eu"].tags.get("v1") != b


def test_ranges_that_share_what_was_lost_are_read_a_few_times_at_most(lm: Deployment) -> None:
    first = mirrored(lm, a=b"1")
    for n in range(12):
        mirrored(lm, **{f"f{n}": b"x"})
    lose(lm, first, "a")
    age(first, lm=lm)
    reads: Counter[str] = Counter()
    get = lm.eu_store.get

    def counted(uri: str) -> bytes:
        reads[uri] += 1
        return get(uri)

    with mock.patch("mirroring.validate.resolve_doubt.BATCH", 2), mock.patch.object(lm.eu_store, "get", counted):
        lm.work(40, look=False)
    assert Blocker.objects.count() == 13
    assert not Coverage.objects.to_read().exists()
    assert max(n for uri, n in reads.items() if "_lakefs" in uri) <= 4


def torn_by_force(lm: Deployment) -> tuple[str, str]:
    """Somebody moves a branch ahead by force, to a commit that has not arrived: where it stood, and where it stands."""
    branches_at_source = lm.lake.repository.branches
    branches_at_source["t"] = branches_at_source["main"]
    mirrored(lm, m=b"main")
    stood = mirrored(lm, "t", a=b"1")
    ahead = lm.lake.commit("t", {"b": b"2"})
    lm.arrive(lm.lake.address_of(ahead, "b"))
    lm.work(2)
    assert branches(lm)["t"] == stood
    branches(lm)["t"] = ahead
    return stood, ahead


def main_goes_on(lm: Deployment) -> bool:
    held, head = lm.eu_store.hidden, lm.lake.commit(files={"n": b"3"})
    lm.arrive()
    lm.eu_store.hidden = held
    lm.work(4)
    return lm.head() == head


def test_92_a_damaged_certificate_proves_nothing_and_stops_no_branch(lm: Deployment) -> None:
    stood, _ = torn_by_force(lm)
    lm.eu_store.objects[f"{NAMESPACE}/_lakemirror/certificates/t.json"] = b"{"
    assert main_goes_on(lm)
    assert branches(lm)["t"] == stood


def test_92_a_certificate_that_can_not_be_read_delays_its_own_branch_alone(lm: Deployment) -> None:
    stood, ahead = torn_by_force(lm)
    uri = f"{NAMESPACE}/_lakemirror/certificates/t.json"
    lm.eu_store.unreadable[uri] = RemoteFailure("500: read quorum lost")
    assert main_goes_on(lm)
    assert branches(lm)["t"] == ahead
    assert "branch t: " in Duty.objects.get(kind="promote").outcome
    del lm.eu_store.unreadable[uri]
    lm.work(2)
    assert branches(lm)["t"] == stood


FORCED = {"create_branch", "hard_reset_branch", "delete_branch", "create_tag", "delete_tag"}


def forced(lm: Deployment) -> list[str]:
    return [call for call in lm.eu.calls if call in FORCED]


def fail_over(lm: Deployment) -> None:
    """Somebody makes the mirror's repository writable: people work there now."""
    there = lm.eu.repositories["lake-eu"]
    there.info = replace(there.info, read_only=False)


@pytest.mark.parametrize("ref", ["branch", "tag"])
def test_172_nothing_is_forced_on_a_repository_that_fails_over_while_records_are_proven(
    lm: Deployment, ref: str
) -> None:
    change(tags=True)
    a = mirrored(lm, a=b"1")
    lm.lake.commit(files={"b": b"2"})
    if ref == "tag":
        lm.lake.repository.tags["v1"] = lm.lake.repository.branches["main"]
        lm.lake.repository.branches["main"] = a
    lm.arrive()
    for kind in ("sense", "copy", "validate"):
        lm.run(Duty.objects.get(kind=kind).pk)
    plain, before = lm.eu.put_commit_record, forced(lm)

    def put(*given: Any) -> Any:
        fail_over(lm)
        return plain(*given)

    with mock.patch.object(lm.eu, "put_commit_record", put):
        lm.run(Duty.objects.get(kind="promote").pk)
    assert (forced(lm), Mirror.objects.get().reason_code) == (before, "failed-over")


def test_215_a_server_that_remembers_the_read_only_repository_is_not_asked(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    there = lm.eu.repositories["lake-eu"]
    before, remembered = forced(lm), there.info
    lm.lake.commit(files={"b": b"2"})
    lm.arrive()
    for kind in ("sense", "copy", "validate"):
        lm.run(Duty.objects.get(kind=kind).pk)
    fail_over(lm)
    with mock.patch.object(lm.eu, "get_repository", return_value=remembered):
        lm.run(Duty.objects.get(kind="promote").pk)
    assert (forced(lm), Mirror.objects.get().reason_code) == (before, "failed-over")


@pytest.mark.parametrize("ref", ["branch", "tag"])
def test_172_nor_on_one_that_fails_over_before_a_deletion(lm: Deployment, ref: str) -> None:
    """While the branch's certificate is retired; between the two calls that move a tag."""
    change(tags=True)
    source = lm.lake.repository
    source.branches["t"] = source.tags["v1"] = mirrored(lm, a=b"1")
    lm.work(2)
    before = forced(lm)
    if ref == "branch":
        unselect(lm, "t")
    else:
        source.tags["v1"] = mirrored(lm, "t", a=b"2")
        before = forced(lm)
    plain, delete_tag = lm.eu_store.put, lm.eu.delete_tag

    def put(uri: str, data: bytes) -> Any:
        if b"retired" in data:
            fail_over(lm)
        return plain(uri, data)

    def deleted(*given: Any) -> None:
        delete_tag(*given)
        fail_over(lm)

    with mock.patch.object(lm.eu_store, "put", put), mock.patch.object(lm.eu, "delete_tag", deleted):
        lm.work(2)
    assert forced(lm) == (before if ref == "branch" else [*before, "delete_tag"])
    assert Mirror.objects.get().reason_code == "failed-over"


def unselect(lm: Deployment, branch: str) -> None:
    with mock.patch("mirrors.services.settings.rbac.require"):
        mirror_update(
            actor="system:tests",
            mirror=Mirror.objects.get(),
            changes={"selected": {"include": ["*"], "exclude": [branch]}},
            on_unselect=OnUnselect.DELETE,
        )


def test_173_an_inferred_commit_is_not_shown_once_the_setting_is_exact_again(lm: Deployment) -> None:
    change(first_sync="inferred")
    commits = [lm.lake.commit(files={f"f{number}": b"%d" % number}) for number in range(4)]
    lm.arrive(lm.lake.address_of(commits[-1], "f3"))
    for kind in ("manage", "sense", "copy", "validate") * 2:
        lm.run(Duty.objects.get(kind=kind).pk)
    plain, first = lm.eu.put_commit_record, threading.Lock()

    def put(*given: Any) -> Any:
        if first.acquire(blocking=False):  # records are sent side by side, by threads
            change(first_sync="exact")
        return plain(*given)

    with mock.patch.object(lm.eu, "put_commit_record", put):
        lm.run(Duty.objects.get(kind="promote").pk)
    assert (Mirror.objects.get().first_sync, lm.head()) == ("exact", "")


@pytest.mark.parametrize("call", ["has_uncommitted", "list_repositories"])
def test_173_changes_are_not_undone_once_the_setting_is_to_report_them(lm: Deployment, call: str) -> None:
    mirrored(lm, a=b"1")
    change(repair_tampering="auto")
    there = lm.eu.repositories["lake-eu"]
    there.uncommitted.add("main")
    MirrorBranch.objects.update(looked_at=None)
    plain = getattr(lm.eu, call)

    def answer(*given: Any, **named: Any) -> Any:
        change(repair_tampering="report")
        return plain(*given, **named)

    with mock.patch.object(lm.eu, call, answer):
        lm.run(Duty.objects.get(kind="promote").pk)
    assert (Mirror.objects.get().repair_tampering, there.uncommitted) == ("report", {"main"})


def test_174_an_answer_of_the_repository_before_says_nothing_of_the_one_that_was_taken_over(lm: Deployment) -> None:
    """The old one has another record of c. It is deleted and made anew, and taken over, before that is written down."""
    mirrored(lm, a=b"1")
    c = lm.lake.commit(files={"c": b"1"})
    lm.arrive()
    old = lm.eu.repositories["lake-eu"]
    old.commits[c] = replace(lm.lake.repository.commits[c], generation=77)
    lm.run(Duty.objects.get(kind="sense").pk)
    plain = lm.eu.get_commit

    def answered(repository: str, sha: str) -> Any:
        answer = plain(repository, sha)
        if sha == c and lm.eu.repositories["lake-eu"] is old:
            info = replace(old.info, creation_date=old.info.creation_date + 9)
            lm.eu.repositories["lake-eu"] = replace(old, info=info, commits={}, branches={})
            lm.run(Duty.objects.get(kind="manage").pk, "worker-2")
        return answer

    with mock.patch.object(lm.eu, "get_commit", answered):
        lm.run(Duty.objects.get(kind="copy").pk)
    assert lm.eu.repositories["lake-eu"] is not old
    assert (Mirror.objects.get().state, Blocker.objects.count()) == (Mirror.State.ACTIVE, 0)
    lm.work(4)
    assert lm.head() == c
