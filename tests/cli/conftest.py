"""A terminal in front of a stand-in, and one in front of the application."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lakemirror import api
from rbac import services as rbac
from rbac.models import User
from tests.cli.speaking import KEY, InProcess, StandIn, Terminal, stand_in
from tests.mirrors.conftest import head, lm

__all__ = ["head", "lm"]


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No configuration of the developer's own, no pauses."""
    monkeypatch.setattr(api, "RETRIES", api.RETRIES.new(backoff_factor=0))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("LAKEMIRROR_URL", *KEY, "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[StandIn]:
    """Something that answers as it is told."""
    with stand_in() as told:
        yield told


@pytest.fixture
def run(server: StandIn) -> Terminal:
    """A terminal whose environment names the stand-in."""
    return Terminal({"LAKEMIRROR_URL": server.url, **KEY})


@pytest.fixture
def terminal_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[User], Terminal]:
    """Terminals with a user's key, in front of the application."""
    monkeypatch.setattr("lakemirror.api.HTTPAdapter", InProcess)

    def made(user: User) -> Terminal:
        issued = rbac.key_create(actor="system:tests", user=user)
        key = {"LAKEMIRROR_ACCESS_KEY_ID": issued.key.key_id, "LAKEMIRROR_SECRET_ACCESS_KEY": issued.secret}
        return Terminal({"LAKEMIRROR_URL": "http://testserver", **key})

    return made
