"""What every test of replication rules begins with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client

from rbac.models import User
from tests.api import Api
from tests.documented import answers_as_documented
from tests.mirrors.harness import Deployment, deployment
from tests.replication.world import World, world


@pytest.fixture(autouse=True)
def documented() -> Iterator[None]:
    """What the API answers is what its document says."""
    with answers_as_documented():
        yield


@pytest.fixture
def lm() -> Iterator[Deployment]:
    """A deployment on fakes, without a mirror, whose stores have every place of a rule, empty."""
    with deployment() as made:
        yield made


@pytest.fixture
def w(lm: Deployment) -> Iterator[World]:
    """Stores of three regions, in memory."""
    with world(lm) as made:
        yield made


@pytest.fixture
def api(owner: User) -> Api:
    """Olga's program."""
    return Api(owner)


@pytest.fixture
def olga(owner: User) -> Client:
    """Olga's browser."""
    client = Client()
    client.force_login(owner)
    return client
