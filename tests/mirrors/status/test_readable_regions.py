"""Where a commit may be read, as its mirrors have found out."""

from __future__ import annotations

import pytest

from mirrors.models import Mirror
from mirrors.status.readable_regions import places_of
from tests.mirroring.test_found_by_breaking import age, mirrored
from tests.mirrors.harness import NAMESPACE, Deployment, state_of
from tests.mirrors.promise import real_job

pytestmark = pytest.mark.django_db(transaction=True)


def readable(commit: str) -> dict[str, bool | None]:
    return {place.role: place.readable.answer for place in places_of([Mirror.objects.get()], commit)[1]}


def test_96_a_source_that_lacks_something_is_not_readable_while_the_commit_waits_for_more(lm: Deployment) -> None:
    commit = lm.lake.commit(files={"x": b"1", "y": b"2"})
    x, y = (lm.lake.address_of(commit, path) for path in ("x", "y"))
    lm.arrive(x, y)
    lm.work(3)
    assert readable(commit) == {"source": True, "mirror": False}
    del lm.us_store.objects[f"s3://src/lake/{x}"]
    lm.work(3)
    assert state_of(commit).data == "waiting"
    assert readable(commit) == {"source": False, "mirror": False}


def test_129_what_a_commit_names_is_not_at_hand_and_the_source_lacks_something(lm: Deployment) -> None:
    first = lm.lake.commit(files={"x": b"1"})
    x = lm.lake.address_of(first, "x")
    lm.arrive(x)
    del lm.us_store.objects[f"s3://src/lake/{x}"]
    lm.work(3)
    assert readable(first) == {"source": False, "mirror": False}
    second = lm.lake.commit(files={"y": b"2"})
    metarange = f"_lakefs/{lm.lake.repository.commits[second].metarange_id}"
    lm.arrive(x, metarange)
    lm.work(3)
    assert readable(second) == {"source": None, "mirror": False}
    lm.arrive(x)
    lm.work(3)
    assert readable(second)["source"] is False


def test_137_a_range_that_was_not_looked_through_may_name_what_the_source_lacks(lm: Deployment) -> None:
    first = mirrored(lm, a=b"1", b=b"2")
    with real_job(lm):
        address = lm.lake.address_of(first, "a")
        lm.eu_store.hidden.add(f"{NAMESPACE}/{address}")
        del lm.us_store.objects[f"s3://src/lake/{address}"]
        age(first, lm=lm)
        lm.work(4)
        assert readable(first)["source"] is False
        second = lm.lake.commit(files={"c": b"3"})
        held, file = set(lm.eu_store.hidden), f"{NAMESPACE}/_lakefs/{lm.lake.files_of(second)[1]}"
        lm.arrive()
        lm.eu_store.hidden = held | {file}
        lm.work(4)
        assert readable(second) == {"source": None, "mirror": False}
        lm.eu_store.hidden = held
        lm.work(4)
        assert readable(second)["source"] is False
