"""A read-only repository that exists already is taken over as a mirror, if it is one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from audit.models import AuditEvent
from core.errors import Conflict, Invalid, LakeMirrorError, Unreachable
from mirrors.models import Mirror, MirrorBranch
from mirrors.services import mirrors
from rbac.models import User
from tests.fakes import FakeRepository
from tests.mirrors.harness import NAMESPACE, Deployment, deployment

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def lm() -> Iterator[Deployment]:
    """Without a mirror's rows; what another tool has replicated is at `lake-eu`."""
    with deployment() as made:
        yield made


@pytest.fixture
def byhand(lm: Deployment) -> FakeRepository:
    """A mirror made by hand: main is at the source's first commit of two."""
    first = lm.lake.commit(files={"a": b"1"})
    lm.lake.commit(files={"b": b"2"})
    lm.arrive()
    there = lm.eu.add_repository("lake-eu", NAMESPACE, read_only=True)
    there.commits.update({sha: commit for sha, commit in lm.lake.repository.commits.items() if sha != lm_head(lm)})
    there.branches["main"] = first
    return there


def lm_head(lm: Deployment) -> str:
    return lm.lake.repository.branches["main"]


def create(owner: User, **change: Any) -> Mirror:
    fields: dict[str, Any] = {
        "source_repository": "lake",
        "name": "lake-eu",
        "region": "eu-west-1",
        "storage_namespace": NAMESPACE,
        "adopt": True,
    }
    return mirrors.mirror_create(actor=owner, **(fields | change))


def test_an_adopted_mirror_stays_where_it_is_and_goes_on(lm: Deployment, byhand: FakeRepository, owner: User) -> None:
    mirror = create(owner)
    assert mirror.pinned_creation_date == byhand.info.creation_date
    lm.work(1)
    assert f"{NAMESPACE}/_lakemirror/mirror.json" in lm.eu_store.objects
    lm.work()
    assert lm.head() == lm_head(lm)
    assert Mirror.objects.get().state == Mirror.State.ACTIVE
    assert lm.eu.repositories["lake-eu"].info == byhand.info
    assert lm.torn() == []
    event = AuditEvent.objects.get(action="fs:MirrorRepository")
    assert (event.actor, event.after["adopted"]) == ("olga", True)


def test_an_adopted_mirror_is_not_moved_before_the_new_head_is_complete(
    lm: Deployment, byhand: FakeRepository, owner: User
) -> None:
    before = byhand.branches["main"]
    commit = lm.lake.commit(files={"c": b"3"})
    lm.arrive(lm.lake.address_of(commit, "c"))
    create(owner)
    lm.work()
    assert lm.head() == before
    assert MirrorBranch.objects.filter(stray=True).count() == 0


def test_a_repository_without_branches_is_adopted_too(lm: Deployment, byhand: FakeRepository, owner: User) -> None:
    byhand.branches.clear()
    create(owner)
    lm.work()
    assert lm.head() == lm_head(lm)


def test_without_the_word_an_existing_name_stays_taken_and_the_message_says_how(
    lm: Deployment, byhand: FakeRepository, owner: User
) -> None:
    with pytest.raises(Conflict, match="adopt"):
        create(owner, adopt=False)


def writable(lm: Deployment, there: FakeRepository) -> None:
    there.info = replace(there.info, read_only=False)


def elsewhere(lm: Deployment, there: FakeRepository) -> None:
    there.info = replace(there.info, storage_namespace="s3://dst/elsewhere")


def other_default(lm: Deployment, there: FakeRepository) -> None:
    there.info = replace(there.info, default_branch="trunk")


def other_history(lm: Deployment, there: FakeRepository) -> None:
    there.branches["side"] = "f" * 64


def absent(lm: Deployment, there: FakeRepository) -> None:
    del lm.eu.repositories["lake-eu"]


def unreadable(lm: Deployment, there: FakeRepository) -> None:
    lm.eu.failing["list_branches"] = Unreachable("no answer")


def source_away(lm: Deployment, there: FakeRepository) -> None:
    lm.us.failing["get_commit"] = Unreachable("no answer")


@pytest.mark.parametrize(
    ("spoil", "error", "says"),
    [
        (writable, Conflict, "writable"),
        (elsewhere, Invalid, "s3://dst/elsewhere"),
        (other_default, Conflict, "trunk"),
        (other_history, Conflict, "side is at ffffffff"),
        (absent, Invalid, "no such repository to adopt"),
        (unreadable, Unreachable, "destination"),
        (source_away, Unreachable, "source"),
    ],
)
def test_what_is_not_a_mirror_of_the_source_is_refused(
    lm: Deployment, byhand: FakeRepository, owner: User, spoil: Any, error: type[LakeMirrorError], says: str
) -> None:
    spoil(lm, byhand)
    with pytest.raises(error, match=says):
        create(owner)
    assert not Mirror.objects.exists()


def test_a_mirror_that_we_have_is_not_adopted_again(lm: Deployment, byhand: FakeRepository, owner: User) -> None:
    create(owner)
    with pytest.raises(Conflict, match="lake-eu"):
        create(owner)


def test_the_command_adopts_and_tells_what_is_wrong(lm: Deployment, byhand: FakeRepository, owner: User) -> None:
    words = ["lake", "lake-eu", "--region", "eu-west-1", "--actor", "olga", "--storage-namespace"]
    with pytest.raises(CommandError, match="s3://dst/other"):
        call_command("adopt", *words, "s3://dst/other")
    out = StringIO()
    call_command("adopt", *words, NAMESPACE, stdout=out)
    assert "lake-eu in eu-west-1 is now the mirror of lake (us-east-1)" in out.getvalue()
