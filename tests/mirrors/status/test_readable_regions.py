"""Where a commit may be read, as its mirrors have found out."""

from __future__ import annotations

import pytest

from mirrors.models import Mirror
from mirrors.status.readable_regions import places_of
from tests.mirrors.harness import Deployment, state_of

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
