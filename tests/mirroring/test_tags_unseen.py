"""Tags that nobody looked at for long are told as unknown, whatever kept everybody from it. The number is that of
docs/promotion.md."""

from __future__ import annotations

from datetime import timedelta
from unittest import mock

import pytest
from django.db.models import F

from core.errors import Denied, Unreachable
from core.mirroring.promotion import MOVED_BY_OTHERS
from jobs.models import Duty
from mirrors.models import Mirror, MirrorTag, MoveIntent, Repository, SourceTag
from mirrors.services.settings import mirror_update
from mirrors.status.tags import tag_readings
from mirrors.transitions import duties as mirror_duties
from tests.mirroring.test_found_by_breaking import change, mirrored
from tests.mirroring.test_tags import source_tags, tags
from tests.mirrors.harness import Deployment

pytestmark = pytest.mark.django_db(transaction=True)


class Killed(BaseException):
    """In place of a worker's end."""


def two_hours_pass() -> None:
    Repository.objects.update(tags_unseen_since=F("tags_unseen_since") - timedelta(hours=2))


def shown() -> list[str]:
    return [tag.status for tag in tag_readings(Mirror.objects.get(name="lake-eu"), amount=3)]


def test_145_tags_that_are_followed_again_are_as_old_as_the_last_look(lm: Deployment) -> None:
    """Another mirror follows them by then, and has never seen them."""
    first = mirrored(lm, a=b"1")
    change(tags=True)
    source_tags(lm)["v1"] = first
    lm.work(2)
    assert (tags(lm), shown()) == ({"v1": first}, ["Up to date"])
    change(tags=False)
    source_tags(lm)["v1"] = mirrored(lm, b=b"1")
    lm.work(1)
    two_hours_pass()
    other = Mirror.objects.create(
        name="lake-ap",
        source=Repository.objects.get(),
        region="ap-southeast-2",
        storage_namespace="s3://ap/lake",
        tags=True,
    )
    mirror_duties.ensure_mirror_duties(other)
    with mock.patch.object(lm.us, "list_tags", side_effect=Denied("fs:ListTags")):
        with mock.patch("mirrors.services.settings.rbac.require"):
            mirror_update(actor="system:tests", mirror=Mirror.objects.get(name="lake-eu"), changes={"tags": True})
        lm.work(2)
        assert shown() == ["Unknown"]
    lm.work(2)
    assert shown() == ["Up to date"]


@pytest.mark.parametrize("ends", [Killed(), ValueError("ours")])
def test_145_a_worker_that_ends_in_each_look_at_them_has_not_seen_them(lm: Deployment, ends: BaseException) -> None:
    Mirror.objects.update(tags=True)
    source_tags(lm)["v1"] = mirrored(lm, a=b"1")
    lm.work(2)
    source_tags(lm)["v1"] = mirrored(lm, b=b"1")
    lm.work(0)
    sense = Duty.objects.get(kind="sense").pk
    for _ in range(2):
        with mock.patch.object(lm.us, "list_tags", side_effect=ends):
            try:
                lm.run(sense)
            except Killed:
                Duty.objects.update(holder="", until=None)
        two_hours_pass()
    assert shown() == ["Unknown"]


def test_146_a_tag_that_was_deleted_while_nobody_looked_is_deleted_and_nobody_is_blamed(lm: Deployment) -> None:
    change(tags=True)
    head = mirrored(lm, a=b"1")
    source_tags(lm).update(v1=head, v2=head)
    lm.work(2)
    change(tags=False)
    del source_tags(lm)["v1"]
    lm.work(1)
    change(tags=True)
    for _ in range(3):
        lm.work(2)
        SourceTag.objects.update(missing_since=F("missing_since") - timedelta(hours=1))
    assert tags(lm) == {"v2": head}
    whys = set(Mirror.objects.get().promotions.filter(is_tag=True).values_list("why", flat=True))
    assert whys.isdisjoint(MOVED_BY_OTHERS)


@pytest.mark.parametrize("deleted", [True, False])
def test_189_a_tag_that_was_made_and_not_noted_before_tags_were_switched_off_is_ours(
    lm: Deployment, deleted: bool
) -> None:
    """The worker died between its call and its note, and they are followed again days later."""
    change(tags=True)
    head = mirrored(lm, a=b"1")
    source_tags(lm)["v1"] = head
    with mock.patch("mirroring.promote.tags.TagRef.read_back", side_effect=Unreachable("it died")):
        lm.work(1)
    assert tags(lm) == {"v1": head} and not MirrorTag.objects.exists()
    change(tags=False)
    MoveIntent.objects.update(at=F("at") - timedelta(days=3))
    lm.work(1)
    if deleted:
        del source_tags(lm)["v1"]
    source_tags(lm)["v2"] = head
    change(tags=True)
    for _ in range(3):
        lm.work(2)
        SourceTag.objects.update(missing_since=F("missing_since") - timedelta(hours=1))
    assert tags(lm) == ({"v2": head} if deleted else {"v1": head, "v2": head})
    assert not MirrorTag.objects.filter(stray=True).exists()
    whys = set(Mirror.objects.get().promotions.filter(is_tag=True).values_list("why", flat=True))
    assert whys.isdisjoint(MOVED_BY_OTHERS)


def test_189_nobody_is_blamed_before_the_sources_tags_were_looked_at(lm: Deployment) -> None:
    change(tags=True)
    head = mirrored(lm, a=b"1")
    source_tags(lm)["v1"] = head
    with mock.patch("mirroring.promote.tags.TagRef.read_back", side_effect=Unreachable("it died")):
        lm.work(1)
    change(tags=False)
    change(tags=True)
    lm.run(Duty.objects.get(kind="promote").pk)
    assert not MirrorTag.objects.filter(stray=True).exists()
    lm.work(2)
    assert shown() == ["Up to date"]
