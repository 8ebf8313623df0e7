"""What every test of the engine begins with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.documented import answers_as_documented
from tests.mirrors.harness import Deployment, deployment


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
