"""What is changed and who changed it are written down together or not at all."""

from __future__ import annotations

from unittest import mock

import pytest

from mirrors.models import Mirror
from mirrors.services.mirrors import mirror_create, mirror_delete
from rbac.models import User
from tests.mirrors.harness import NAMESPACE, Deployment

pytestmark = pytest.mark.django_db


@pytest.fixture
def full_disk() -> object:
    with mock.patch("mirrors.services.mirrors.rbac.audit", side_effect=OSError("the disk is full")) as failing:
        yield failing


def test_no_mirror_is_made_that_the_audit_does_not_tell_of(lm: Deployment, owner: User, full_disk: object) -> None:
    Mirror.objects.all().delete()
    place = {"name": "lake-eu", "region": "eu-west-1", "storage_namespace": NAMESPACE}
    with pytest.raises(OSError, match="full"):
        mirror_create(actor=owner, source_repository="lake", **place)
    assert not Mirror.objects.exists()


def test_no_mirror_is_deleted_that_the_audit_does_not_tell_of(lm: Deployment, owner: User, full_disk: object) -> None:
    mirror = Mirror.objects.first() or lm.add_mirror()
    with pytest.raises(OSError, match="full"):
        mirror_delete(actor=owner, mirror=mirror)
    assert Mirror.objects.get().state == mirror.state
