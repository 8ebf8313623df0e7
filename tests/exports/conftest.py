"""What every test of exports begins with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import requests

from rbac.models import User
from tests.api import Api
from tests.documented import answers_as_documented
from tests.exports.soak import Soak, soaking
from tests.exports.world import World, world
from tests.mirrors.harness import Deployment, deployment
from tests.s3_double import running_moto


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


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    """A real S3 server, as far as moto is one."""
    with running_moto() as endpoint:
        yield endpoint


@pytest.fixture
def w(lm: Deployment, moto: str, owner: User) -> Iterator[World]:
    """A repository to export, and an empty bucket to export to."""
    requests.post(f"{moto}/moto-api/reset", timeout=5)
    with world(lm, moto) as made:
        made.owner = owner
        yield made


@pytest.fixture
def life(lm: Deployment, owner: User) -> Iterator[Soak]:
    """An export on an S3 in memory, in which nothing goes wrong until the test says so."""
    with soaking(lm, owner, 0) as made:
        yield made
