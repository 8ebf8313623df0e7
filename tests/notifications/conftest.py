"""What the tests of notifications share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from db import clock
from deployment import config
from notifications.models import Channel
from tests.fixtures import admin, api, documented, head, lm, olga, viewer
from tests.notifications.factories import make_channel
from tests.notifications.receiver import Receiver, receiver
from tests.notifications.rounds import Rounds

__all__ = ["admin", "api", "documented", "head", "lm", "olga", "viewer"]

Tell = Callable[..., None]


@pytest.fixture
def there() -> Iterator[Receiver]:
    """A receiver."""
    with receiver() as made:
        yield made


@pytest.fixture
def channel(there: Receiver) -> Channel:
    """A channel to it."""
    return make_channel(f"{there.url}/hook/token-of-the-path")


@pytest.fixture
def looks() -> Rounds:
    """Rounds that begin now."""
    return Rounds(clock.now())


@pytest.fixture
def tell(monkeypatch: pytest.MonkeyPatch) -> Tell:
    """Change fields of `notifications` in this process's configuration."""

    def told(**fields: Any) -> None:
        here = config.current()
        there = replace(here, notifications=replace(here.notifications, **fields))
        monkeypatch.setattr(config, "current", lambda: there)

    return told
