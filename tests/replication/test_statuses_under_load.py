"""What pages and API say to be open while somebody writes, held against both sides at many moments."""

from __future__ import annotations

import os

import pytest

from core.replicating.eligible import is_own
from tests.api import Api
from tests.replication.load import Load
from tests.replication.world import World

pytestmark = pytest.mark.django_db
SEEDS = range(int(os.environ.get("LAKEMIRROR_RULE_SEEDS", "1")))


class InMemory:
    """The stores of a world."""

    bucket = "src"

    def __init__(self, w: World) -> None:
        self.w = w

    def put(self, key: str, data: bytes) -> None:
        with self.w.home._one:
            self.w.put(key, data)

    def drop(self, key: str) -> None:
        with self.w.home._one:
            del self.w.home.buckets["src"][key]

    def source(self) -> dict[str, str]:
        with self.w.home._one:
            return {key: self.w.home.etag_of(data) for key, data in self.w.home.buckets["src"].items()}

    def target(self) -> dict[str, str]:
        with self.w.away._one:
            found = dict(self.w.away.buckets["out"])
        return {key: self.w.away.etag_of(data) for key, data in found.items() if not is_own(key)}


@pytest.mark.parametrize("markers", [False, True], ids=["copies", "deletions, too"])
@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_said_to_be_open_is_what_lacks(w: World, api: Api, seed: int, markers: bool) -> None:
    for store in w.stores.values():
        store.per_page = 20
    w.rule(markers=markers, delete_percent=100, metadata="all")
    load = Load(w, InMemory(w), api, seed, lost=0.3, moves=120)
    assert load.live(0.004) == []
    assert load.moments > 10 and load.busy > 2, (load.moments, load.busy)
