"""What the tests of access share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rbac.models import User
from tests.documented import answers_as_documented
from tests.mirrors.api import Api


@pytest.fixture(autouse=True)
def documented() -> Iterator[None]:
    """What the API answers is what its document says."""
    with answers_as_documented():
        yield


@pytest.fixture
def admin(owner: User) -> Api:
    """Olga's program."""
    return Api(owner)


@pytest.fixture
def viewer(teammate: User) -> Api:
    """Tom's program."""
    return Api(teammate)
