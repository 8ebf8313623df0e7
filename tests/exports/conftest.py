"""What every test of exports begins with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rbac.models import User
from tests.documented import answers_as_documented
from tests.mirrors.api import Api
from tests.mirrors.harness import Deployment, deployment


@pytest.fixture(autouse=True)
def documented() -> Iterator[None]:
    """What the API answers is what its document says."""
    with answers_as_documented():
        yield


@pytest.fixture
def lm() -> Iterator[Deployment]:
    """A deployment on fakes, with a repository `lake` and no mirror of it."""
    with deployment() as made:
        yield made


@pytest.fixture
def api(owner: User) -> Api:
    """Olga's program."""
    return Api(owner)
