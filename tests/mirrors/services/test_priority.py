"""A branch or a commit that somebody needs goes before all that waits longer."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit.models import AuditEvent
from core.errors import Denied, NotFound, RemoteFailure, Unreachable
from jobs.models import Duty
from mirrors.models import Mirror, MirrorCommit
from mirrors.services.priority import mirror_prioritise
from rbac.models import User
from tests.api import Api
from tests.mirrors.harness import Deployment, state_of

pytestmark = pytest.mark.django_db(transaction=True)

PRIORITISE = "/service/replication/v1/repositories/lake/mirrors/lake-eu/prioritise"


@pytest.fixture(autouse=True)
def small_batches() -> Iterator[None]:
    with mock.patch("mirroring.validate.commits.BATCH", 2), mock.patch("mirroring.copy_records.BATCH", 2):
        yield


@pytest.fixture
def backlog(lm: Deployment) -> list[str]:
    """The mirror has main's first commit. Eight more wait there, and behind them two of `hot`, which left at the first.

    All of it has arrived, and was sensed.
    """
    first = lm.lake.commit()
    lm.arrive()
    lm.work(1)
    assert lm.head() == first
    waiting = [lm.lake.commit() for _ in range(8)]
    run(lm, "sense")
    lm.lake.repository.branches["hot"] = first
    for _ in range(2):
        lm.lake.commit("hot")
    lm.arrive()
    run(lm, "sense")
    return waiting


def run(lm: Deployment, kind: str) -> None:
    lm.run(Duty.objects.get(kind=kind).pk)


def head(lm: Deployment, branch: str = "hot") -> str:
    return lm.lake.repository.branches[branch]


def prioritise(owner: User, **which: str) -> MirrorCommit:
    return mirror_prioritise(actor=owner, mirror=Mirror.objects.select_related("source").get(), **which)


def rounds_until(lm: Deployment, branch: str) -> int:
    """How many rounds of the validator it takes until a branch is at the source's head."""
    for number in range(1, 20):
        for kind in ("copy", "validate", "promote"):
            run(lm, kind)
        if lm.head(branch) == head(lm, branch):
            return number
    raise AssertionError(f"{branch} was never promoted")


def urgent() -> list[str]:
    return list(MirrorCommit.objects.filter(urgency__gt=0).order_by("commit_id").values_list("commit__sha", flat=True))


# --- what is gained ---------------------------------------------------------------------------------------------------


def test_without_priority_a_branch_waits_for_the_backlog(lm: Deployment, backlog: list[str]) -> None:
    assert rounds_until(lm, "hot") == 5


def test_a_prioritised_branch_is_promoted_rounds_earlier(lm: Deployment, backlog: list[str], owner: User) -> None:
    prioritise(owner, branch="hot")
    assert rounds_until(lm, "hot") == 1
    assert lm.head() != head(lm, "main")
    assert rounds_until(lm, "main") == 4
    assert lm.torn() == []


def test_so_is_the_branch_of_a_prioritised_commit(lm: Deployment, backlog: list[str], owner: User) -> None:
    run(lm, "copy")
    prioritise(owner, commit=head(lm))
    run(lm, "validate")
    run(lm, "promote")
    assert lm.head("hot") == head(lm)


def test_what_a_commit_needs_comes_with_it_and_nothing_else(lm: Deployment, backlog: list[str], owner: User) -> None:
    """The third of main's needs the two before it."""
    prioritise(owner, commit=backlog[2])
    run(lm, "copy")
    assert urgent() == backlog[:3]
    run(lm, "validate")
    run(lm, "promote")
    assert lm.head() == backlog[1], "its history is in order before it is shown"
    run(lm, "validate")
    run(lm, "promote")
    assert lm.head() == backlog[2]
    assert lm.torn() == []


def test_urgent_records_are_copied_first_and_parents_before_children(
    lm: Deployment, backlog: list[str], owner: User
) -> None:
    prioritise(owner, branch="hot")
    with mock.patch.object(lm.eu, "put_commit_record", side_effect=lm.eu.put_commit_record) as calls:
        run(lm, "copy")
    sent = [call.args[1] for call in calls.call_args_list]
    assert sent[1].id == head(lm)
    assert sent[1].parents == (sent[0].id,)
    assert [record.id for record in sent[2:]] == backlog


def test_asked_for_in_the_middle_of_a_round_of_copying_it_goes_next(
    lm: Deployment, backlog: list[str], owner: User
) -> None:
    sent: list[str] = []
    put = lm.eu.put_commit_record

    def asks(repository: str, record: object) -> object:
        sent.append(record.id)  # type: ignore[attr-defined]
        if len(sent) == 1:
            MirrorCommit.objects.filter(commit__sha=head(lm)).update(urgency=MirrorCommit.Urgency.ASKED)
        return put(repository, record)  # type: ignore[arg-type]

    with mock.patch("mirroring.copy_records.AT_ONCE", 1), mock.patch.object(lm.eu, "put_commit_record", asks):
        run(lm, "copy")
    assert sent.index(head(lm)) == 3


# --- what stays right -------------------------------------------------------------------------------------------------


def test_nothing_is_urgent_any_more_once_it_is_promoted(lm: Deployment, backlog: list[str], owner: User) -> None:
    prioritise(owner, branch="hot")
    rounds_until(lm, "hot")
    assert urgent() == []
    with CaptureQueriesContext(connection) as asked:
        run(lm, "validate")
    assert not [query for query in asked if '"urgency" = 0' in query["sql"]]


def test_a_head_that_lacks_an_object_is_not_shown_and_goes_first_when_that_arrives(
    lm: Deployment, backlog: list[str], owner: User
) -> None:
    commit = lm.lake.commit("hot", files={"late": b"object"})
    lm.arrive(lm.lake.address_of(commit, "late"))
    run(lm, "sense")
    prioritise(owner, branch="hot")
    for kind in ("copy", "validate", "validate", "promote"):
        run(lm, kind)
    assert (state_of(commit).data, urgent()) == ("waiting", [commit])
    assert lm.head("hot") == lm.lake.repository.commits[commit].parents[0]
    lm.arrive()
    lm.work(1)
    assert lm.head("hot") == commit
    assert lm.head() != head(lm, "main")


def test_what_can_not_be_checked_keeps_nothing_else_from_it(lm: Deployment, backlog: list[str], owner: User) -> None:
    """Rounds of the urgent ones fail; those in between are the others'."""
    prioritise(owner, branch="hot")
    run(lm, "copy")
    lm.check_error = Unreachable("the store does not answer")
    run(lm, "validate")
    lm.check_error = None
    run(lm, "validate")
    assert state_of(backlog[0]).data == "complete"
    run(lm, "validate")
    assert state_of(head(lm)).data == "complete"


def test_a_record_that_can_not_be_copied_is_tried_once_in_a_round(
    lm: Deployment, backlog: list[str], owner: User
) -> None:
    prioritise(owner, branch="hot")
    first = lm.lake.repository.commits[head(lm)].parents[0]
    put, tried = lm.eu.put_commit_record, []

    def refuses(repository: str, record: object) -> object:
        tried.append(record.id)  # type: ignore[attr-defined]
        if tried[-1] == first:
            raise RemoteFailure("500")
        return put(repository, record)  # type: ignore[arg-type]

    with mock.patch.object(lm.eu, "put_commit_record", refuses):
        run(lm, "copy")
    assert tried.count(first) == 1
    assert head(lm) not in tried, "its parent is not there"
    assert set(backlog) <= set(tried)


def test_a_repository_made_anew_is_given_the_needed_records_again(
    lm: Deployment, backlog: list[str], owner: User
) -> None:
    commit = lm.lake.commit("hot", files={"late": b"object"})
    lm.arrive(lm.lake.address_of(commit, "late"))
    lm.work(1)
    prioritise(owner, branch="hot")
    for kind in ("copy", "validate"):
        run(lm, kind)
    assert urgent()
    there = lm.eu.repositories.pop("lake-eu").info
    made = lm.eu.add_repository("lake-eu", there.storage_namespace, read_only=True)
    made.info = type(there)(there.id, there.storage_namespace, "main", there.creation_date + 60, True)
    run(lm, "manage")
    assert MirrorCommit.objects.get(urgency=MirrorCommit.Urgency.ASKED).commit.sha == commit
    lm.arrive()
    lm.work()
    assert lm.head("hot") == commit
    assert lm.torn() == []


# --- the API ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def api(owner: User) -> Api:
    return Api(owner)


def test_prioritising_is_answered_and_audited(lm: Deployment, backlog: list[str], api: Api) -> None:
    status, told = api.call("POST", PRIORITISE, {"branch": "hot"})
    assert (status, told["commit"], told["prioritised"]) == (202, head(lm), True)
    event = AuditEvent.objects.get(actor="olga", after__prioritise="lake-eu")
    assert event.after == {"prioritise": "lake-eu", "branch": "hot", "commit": head(lm)}
    rounds_until(lm, "hot")
    assert api.call("POST", PRIORITISE, {"commit": head(lm)})[1]["prioritised"] is False
    assert urgent() == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"branch": "hot", "commit": "0" * 64}, 400),
        ({"commit": "0" * 63}, 400),
        ({"branches": "hot"}, 400),
        ({"branch": "nothing"}, 404),
        ({"commit": "0" * 64}, 404),
    ],
)
def test_what_can_not_be_prioritised(lm: Deployment, api: Api, body: dict[str, str], status: int) -> None:
    assert api.call("POST", PRIORITISE, body)[0] == status


def test_a_branch_that_is_not_selected_is_none_of_the_mirror_s(lm: Deployment, backlog: list[str], owner: User) -> None:
    Mirror.objects.update(selected={"include": ["main"], "exclude": []})
    with pytest.raises(NotFound):
        prioritise(owner, branch="hot")


def test_prioritising_needs_the_right_to_mirror(lm: Deployment, backlog: list[str], outsider: User) -> None:
    assert Api(outsider).call("POST", PRIORITISE, {"branch": "hot"})[0] == 403
    with pytest.raises(Denied):
        prioritise(outsider, branch="hot")
    assert urgent() == []
