"""Fixtures that the folders of tests choose from, each in its conftest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client

from rbac.models import User
from tests.api import Api
from tests.documented import answers_as_documented
from tests.mirrors.harness import Deployment, deployment
from tests.mirrors.kept import once


@pytest.fixture(autouse=True)
def documented() -> Iterator[None]:
    """What the API answers is what its document says."""
    with answers_as_documented():
        yield


@pytest.fixture
def lm() -> Iterator[Deployment]:
    """A deployment on fakes with one mirror."""
    with deployment() as made:
        made.add_mirror()
        yield made


@pytest.fixture
def head(request: pytest.FixtureRequest, lm: Deployment) -> str:
    """A commit that was promoted."""

    def make() -> str:
        commit = lm.lake.commit(files={"a": b"1", "b": b"2"})
        lm.arrive()
        lm.work()
        assert lm.head() == commit
        lm.checked.clear()
        return commit

    return once(request, lm, make)


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


@pytest.fixture
def admin(owner: User) -> Api:
    """Olga's program."""
    return Api(owner)


@pytest.fixture
def viewer(teammate: User) -> Api:
    """Tom's program."""
    return Api(teammate)
