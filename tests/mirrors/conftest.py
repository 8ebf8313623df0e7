"""What every test of the engine begins with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.mirrors.harness import Deployment, deployment


@pytest.fixture
def lm() -> Iterator[Deployment]:
    """A deployment on fakes with one mirror."""
    with deployment() as made:
        made.add_mirror()
        yield made
