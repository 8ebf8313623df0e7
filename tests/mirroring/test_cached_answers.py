"""What a server of the destination's lakeFS remembers of a repository that is not there any more. Numbers are those of
docs/promotion.md."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from unittest import mock

import pytest

from core.types import Page
from jobs.models import Duty
from mirrors.models import Mirror, Promotion
from mirrors.queries.certificates import certificate_uri
from tests.fakes import FakeRepository
from tests.mirroring.test_deletions import run
from tests.mirrors.harness import NAMESPACE, Deployment
from tests.mirrors.transitions.test_selection import mirrored

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("how", ["writable", "replaced"])
def test_218_a_repository_that_is_not_ours_any_more_is_not_deleted_with_its_mirror(lm: Deployment, how: str) -> None:
    mirrored(lm, a=b"1")
    ours = lm.eu.repositories["lake-eu"]
    cached = ours.info
    theirs = replace(ours.info, read_only=False)
    if how == "replaced":
        theirs = replace(theirs, storage_namespace="s3://people/own", creation_date=cached.creation_date + 5)
    lm.eu.repositories["lake-eu"] = FakeRepository(theirs, {"main": "theirs"})
    with mock.patch.object(lm.eu, "get_repository", return_value=cached):
        run(lm, "manage")
        mirror = Mirror.objects.get()
        assert Mirror.objects.move(mirror.pk, Mirror.State.STOPPED, Mirror.State.DELETING)
        run(lm, "manage")
    assert "lake-eu" in lm.eu.repositories


@pytest.mark.parametrize("listed_now", [True, False])
def test_219_what_a_cache_takes_for_the_old_repository_is_not_noted_of_the_new_one(
    lm: Deployment, listed_now: bool
) -> None:
    """Made anew: calls by its name go to the old one for some seconds, which lives on without its branches."""
    head = mirrored(lm, a=b"1")
    lm.work(2)
    old, plain = lm.eu.repositories["lake-eu"], lm.eu._repository
    lm.eu.repositories["lake-eu"] = FakeRepository(replace(old.info, creation_date=old.info.creation_date + 60))
    old.branches.clear()
    old.commits.clear()
    unlisted = nullcontext() if listed_now else mock.patch.object(lm.eu, "list_repositories", return_value=Page([]))
    with unlisted, mock.patch.object(lm.eu, "_repository", lambda name: old if name == "lake-eu" else plain(name)):
        lm.work(2)
    for _ in range(3):
        lm.work(1)
    assert (lm.head(), lm.torn()) == (head, [])
    assert not Promotion.objects.filter(why="gone-at-the-mirror").exists()


def test_223_no_certificate_is_written_while_the_new_repository_waits_for_its_servers(lm: Deployment) -> None:
    """Somebody deletes the mirror's repository and its files right after a branch was moved, and makes it anew."""
    mirrored(lm, a=b"1")
    lm.work(2)
    uri = certificate_uri(NAMESPACE, "main")
    moved = lm.lake.commit(files={"b": b"2"})
    lm.arrive()
    for kind in ("sense", "copy", "validate", "promote"):
        run(lm, kind)
    assert lm.head() == moved and moved.encode() not in lm.eu_store.objects[uri]
    old, plain = lm.eu.repositories["lake-eu"], lm.eu._repository
    lm.eu.repositories["lake-eu"] = FakeRepository(replace(old.info, creation_date=old.info.creation_date + 60))
    old.branches.clear()
    lm.eu_store.objects.clear()
    with mock.patch.object(lm.eu, "_repository", lambda name: old if name == "lake-eu" else plain(name)):
        run(lm, "manage")
    assert "not every server" in Duty.objects.get(kind="manage").outcome
    assert uri not in lm.eu_store.objects
    lm.arrive()
    lm.work(3)
    assert (lm.head(), lm.torn()) == (moved, []) and moved.encode() in lm.eu_store.objects[uri]
