"""What somebody's look at an object may put in question: what a check of the mirror would find too, and no more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest

from core.errors import Unreachable
from core.locating import Located
from mirrors.models import Coverage, Mirror
from mirrors.services.locate.locate import object_locate
from rbac.models import User
from tests.mirroring.test_found_by_breaking import uri_of
from tests.mirrors.harness import Deployment

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def in_other_parts(lm: Deployment) -> Iterator[str]:
    """A commit whose object `a` lies at the mirror in other parts, so that its ETag there is another one."""
    first = lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    plain, where = type(lm.eu_store).head, uri_of(lm, first, "a")

    def head(store: Any, uri: str) -> Any:
        info = plain(store, uri)
        return info and (info._replace(etag="c" * 32 + "-3") if uri == where else info)

    with mock.patch.object(type(lm.eu_store), "head", head):
        yield first


@pytest.mark.parametrize("depth", ["presence", "size"])
def test_243_who_looks_deeper_than_the_mirror_puts_nothing_in_question(
    lm: Deployment, owner: User, in_other_parts: str, depth: str
) -> None:
    Mirror.objects.update(depth=depth)
    lm.work(3)
    assert locate(owner).region == "us-east-1"
    assert (Coverage.objects.get().state, lm.head()) == ("complete", in_other_parts)


def test_243_a_commit_that_was_not_checked_yet_puts_in_question_nothing_that_passed_by_its_content(
    lm: Deployment, owner: User, in_other_parts: str
) -> None:
    lm.work(3)
    assert lm.head() == in_other_parts
    second = lm.lake.commit(files={"b": b"2"})
    assert locate(owner).commit == second
    assert Coverage.objects.get().state == "complete"


def test_243_what_the_source_has_as_the_mirror_has_it_is_not_put_in_question(lm: Deployment, owner: User) -> None:
    first = lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    for store, uri in ((lm.eu_store, uri_of(lm, first, "a")), (lm.us_store, at_source(lm, first, "a"))):
        store.objects[uri] = b"another size than the entry says"
    lm.work(3)
    assert lm.head() == first
    with pytest.raises(Unreachable):
        locate(owner)
    assert Coverage.objects.get().state == "complete"


@pytest.mark.parametrize("bytes_there", [b"X", b"another size"])
def test_241_other_bytes_than_the_source_has_are_found(lm: Deployment, owner: User, bytes_there: bytes) -> None:
    first = lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.work(2)
    lm.lake.commit(files={"b": b"2"})
    lm.eu_store.objects[uri_of(lm, first, "a")] = bytes_there
    assert locate(owner).region == "us-east-1"
    assert Coverage.objects.get().state == "waiting"


def test_243_another_store_than_the_one_of_the_checks_says_nothing(lm: Deployment, owner: User) -> None:
    first = lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.work(2)
    Mirror.objects.update(store="http://another s3://bucket")
    lm.eu_store.hidden.add(uri_of(lm, first, "a"))
    assert locate(owner).region == "us-east-1"
    assert Coverage.objects.get().state == "complete"


def locate(owner: User) -> Located:
    return object_locate(
        actor=owner, repository="lake", source_region="us-east-1", ref="main", path="a", prefer="eu-west-1"
    )


def at_source(lm: Deployment, commit: str, path: str) -> str:
    return f"s3://src/lake/{lm.lake.address_of(commit, path)}"
