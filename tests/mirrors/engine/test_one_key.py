"""A store that answers 500 for ever to one single key (an object without its read quorum, say): who waits for it?
The numbers are those of docs/promotion.md."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.errors import RemoteFailure
from db import clock
from mirrors.models import Blocker, Coverage, Mirror
from mirrors.status.mirror import mirror_status
from tests.mirrors.engine.test_found_by_breaking import age, lose, mirrored, uri_of
from tests.mirrors.harness import NAMESPACE, Deployment
from tests.mirrors.promise import real_job

pytestmark = pytest.mark.django_db(transaction=True)
LOST_QUORUM = RemoteFailure("500: read quorum lost")


@pytest.fixture
def both(lm: Deployment) -> Iterator[str]:
    """Two branches, with the real check; gives the head of the second one."""
    lm.lake.repository.branches["t"] = lm.lake.repository.branches["main"]
    mirrored(lm, m=b"main")
    head = mirrored(lm, "t", a=b"12")
    with real_job(lm):
        yield head


def file_of(lm: Deployment, commit: str, number: int) -> str:
    """Its metarange (0), or one of its ranges."""
    return f"{NAMESPACE}/_lakefs/{lm.lake.files_of(commit)[number]}"


def main_goes_on(lm: Deployment) -> bool:
    new = lm.lake.commit("main", {"n": b"new"})
    held = set(lm.eu_store.hidden)
    lm.arrive()
    lm.eu_store.hidden = held
    lm.work(6)
    return lm.head() == new


def test_105_what_was_missing_and_can_not_be_asked_for_stops_no_other_branch(lm: Deployment, both: str) -> None:
    late = lm.lake.commit("t", {"b": b"3"})
    lm.arrive(lm.lake.address_of(late, "b"))
    lm.work(2)
    lm.eu_store.refused[uri_of(lm, late, "b")] = LOST_QUORUM
    assert main_goes_on(lm) and Blocker.objects.filter(path="b").exists()


@pytest.mark.parametrize("number", [0, 1])
def test_105_a_new_file_of_metadata_that_can_not_be_read_stops_no_other_branch(
    lm: Deployment, both: str, number: int
) -> None:
    late = lm.lake.commit("t", {"b": b"3"})
    lm.arrive()
    lm.eu_store.unreadable[file_of(lm, late, number)] = LOST_QUORUM
    assert main_goes_on(lm)


def test_105_a_range_in_question_that_can_not_be_read_stops_no_other_branch(lm: Deployment, both: str) -> None:
    late = mirrored(lm, "t", b=b"3")
    lm.eu_store.unreadable[file_of(lm, late, 1)] = LOST_QUORUM
    lose(lm, both, "a")
    age(both, lm=lm)
    lm.work(2)
    assert main_goes_on(lm)


def test_105_what_is_old_has_its_turn_although_what_is_in_question_can_not_be_read(lm: Deployment, both: str) -> None:
    uri = file_of(lm, both, 1)
    lm.eu_store.hidden.add(uri)
    age(both, lm=lm)
    lm.work(2)
    assert Blocker.objects.filter(kind="range").exists()
    lm.eu_store.hidden.discard(uri)
    lm.eu_store.unreadable[uri] = LOST_QUORUM
    lm.work(2)
    lose(lm, lm.lake.repository.branches["main"], "m")
    Coverage.objects.filter(state="complete").update(verify_at=clock.now())
    lm.work(6)
    assert Blocker.objects.filter(path="m").exists()


def test_106_no_page_is_up_to_date_while_nothing_can_be_checked_again(lm: Deployment) -> None:
    head = mirrored(lm, b=b"3")
    lm.eu_store.refused[uri_of(lm, head, "b")] = LOST_QUORUM
    age(head, lm=lm)
    with real_job(lm):
        lm.work(8)
    status = mirror_status(Mirror.objects.get())
    assert (status.state, status.reason_code) == ("retrying", "validate_failed")
