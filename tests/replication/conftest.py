"""What every test of replication rules begins with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.mirrors.harness import Deployment, deployment
from tests.replication.world import World, world


@pytest.fixture
def lm() -> Iterator[Deployment]:
    """A deployment on fakes, without a mirror."""
    with deployment() as made:
        yield made


@pytest.fixture
def w(lm: Deployment) -> Iterator[World]:
    """Stores of three regions, in memory."""
    with world(lm) as made:
        yield made
