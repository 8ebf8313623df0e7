"""The database comes back from a backup, and knows less than the destination shows: no branch goes back for that,
nobody is blamed, and nothing is said that nobody knows."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from django.apps import apps
from django.core import serializers
from django.db.models import F

from core.mirroring.states import State
from db import clock
from jobs.models import Duty
from mirroring.promote import older_books
from mirrors.models import Mirror, MirrorBranch, MirrorTag, Promotion, Repository, SourceBranch, SourceTag
from mirrors.status import mirror as readings
from tests.mirrors.harness import Deployment

pytestmark = pytest.mark.django_db

MOVES = {"hard_reset_branch", "create_branch", "delete_branch", "create_tag", "delete_tag"}
BLAME = {"moved-by-somebody", "put-back", "back-where-it-was", "gone-at-the-mirror"}
AGE = timedelta(minutes=10)


@dataclass
class Backup:
    """The rows of mirrors and duties as they were."""

    rows: list[str] = field(default_factory=list)

    def make(self) -> None:
        models = [model for app in ("mirrors", "jobs") for model in apps.get_app_config(app).get_models()]
        self.rows = [serializers.serialize("json", model._base_manager.all()) for model in models]

    def restore(self) -> None:
        """It was made ten minutes ago."""
        for model in (Duty, Mirror, Repository):
            model.objects.all().delete()
        for text in self.rows:
            for row in serializers.deserialize("json", text):
                row.save()
        Mirror.objects.update(destination_looked_at=F("destination_looked_at") - AGE)
        Repository.objects.update(looked_at=F("looked_at") - AGE)


@pytest.fixture
def backup(lm: Deployment, head: str) -> Backup:
    """Made when the first commit had been promoted and certified."""
    Mirror.objects.update(tags=True)
    lm.lake.repository.branches["gone"] = head
    lm.lake.repository.tags["v1"] = head
    lm.work()
    made = Backup()
    made.make()
    return made


def run(lm: Deployment, *kinds: str) -> None:
    """A round of each."""
    for kind in kinds:
        for duty in Duty.objects.filter(kind=kind):
            lm.run(duty.pk)


def mirrored(lm: Deployment, **files: bytes) -> str:
    """A commit that is promoted, before its certificate is written."""
    made = lm.lake.commit(files=files)
    lm.arrive()
    run(lm, "sense", "copy", "validate", "promote")
    assert lm.head() == made
    return made


def follow_deletions(lm: Deployment) -> None:
    """Until what is gone at the source is taken for deleted."""
    lm.work()
    for model in (SourceBranch, SourceTag):
        model.objects.exclude(missing_since=None).update(missing_since=clock.now() - timedelta(seconds=61))
    lm.work()


def whys() -> set[str]:
    return set(Promotion.objects.values_list("why", flat=True))


@pytest.mark.parametrize("then", ["certified", "not certified", "two commits later"])
@pytest.mark.parametrize("first", ["promote", "manage", "sense", "validate"])
def test_224_a_branch_that_is_ahead_of_the_books_stays_whoever_looks_first(
    lm: Deployment, backup: Backup, then: str, first: str
) -> None:
    shown = mirrored(lm, b=b"2")
    if then == "two commits later":
        shown = mirrored(lm, bb=b"2")
    if then == "certified":
        run(lm, "manage")
    backup.restore()
    lm.lake.commit(files={"c": b"3"})  # the source went on as well; it has not arrived
    lm.eu.calls.clear()
    for kind in (first, "promote", "promote", "manage", "sense", "copy", "validate", "promote"):
        run(lm, kind)
        assert lm.head() == shown
    assert MOVES.isdisjoint(lm.eu.calls) and BLAME.isdisjoint(whys())
    lm.arrive()
    lm.work()
    assert lm.head() == lm.lake.repository.branches["main"] == MirrorBranch.objects.get(name="main").head
    assert lm.torn() == [] and BLAME.isdisjoint(whys())


def test_224_until_the_source_was_looked_at_nothing_is_said_to_be_well(lm: Deployment, backup: Backup) -> None:
    mirrored(lm, b=b"2")
    backup.restore()
    run(lm, "promote")
    told = readings.mirror_status(Mirror.objects.get())
    assert told.state is State.UNKNOWN
    assert {branch.state for branch in told.branches} == {State.UNKNOWN}
    lm.work()
    assert readings.mirror_status(Mirror.objects.get()).state is State.UP_TO_DATE


def test_225_what_was_deleted_made_or_rewound_since_is_left_as_it_is(lm: Deployment, backup: Backup, head: str) -> None:
    lake, there = lm.lake.repository, lm.eu.repositories["lake-eu"]
    del lake.branches["gone"], lake.tags["v1"]
    lake.branches["new"] = lm.lake.commit(files={"n": b"1"})
    lake.branches["main"], lake.tags["v2"] = head, lake.branches["new"]
    lm.arrive()
    follow_deletions(lm)
    assert there.branches == lake.branches and there.tags == lake.tags
    backup.restore()
    lm.eu.calls.clear()
    run(lm, "promote", "manage", "promote")
    assert there.branches == lake.branches and there.tags == lake.tags
    assert not MirrorBranch.objects.filter(stray=True).exists() and not MirrorTag.objects.filter(stray=True).exists()
    follow_deletions(lm)
    assert there.branches == lake.branches and there.tags == lake.tags
    assert MOVES.isdisjoint(lm.eu.calls)


def test_226_what_somebody_moved_meanwhile_is_put_back_after_a_look_at_the_source(
    lm: Deployment, backup: Backup, head: str
) -> None:
    backup.restore()
    there = lm.eu.repositories["lake-eu"]
    there.branches["main"] = lm.lake.repository.commits[head].parents[0]
    run(lm, "promote")
    assert lm.head() != head and BLAME.isdisjoint(whys())
    run(lm, "sense", "promote")
    assert lm.head() == head and "put-back" in whys()


def test_226_the_source_is_asked_at_once_and_what_the_books_know_goes_on(lm: Deployment, backup: Backup) -> None:
    lm.lake.commit(files={"b": b"2"})
    run(lm, "sense", "copy")
    backup.make()
    backup.restore()
    lm.arrive()
    run(lm, "validate", "promote")
    assert ("sense", Repository.objects.get().pk) in lm.woken
    assert lm.head() == lm.lake.repository.branches["main"], "the books knew that commit"


def test_rounds_that_follow_each_other_are_no_pause(lm: Deployment, backup: Backup) -> None:
    run(lm, "promote")
    assert Mirror.objects.get().resumed_at is None
    pause = older_books._longest_pause() + timedelta(seconds=1)
    Mirror.objects.update(destination_looked_at=clock.now() - pause)
    run(lm, "promote")
    assert older_books.may_be_older(Mirror.objects.get())
    run(lm, "sense")
    assert not older_books.may_be_older(Mirror.objects.get())
