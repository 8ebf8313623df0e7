"""Where can I read this? The region that has an object gives an address by which its bytes are read without keys."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
import requests

from rbac.models import User
from tests.api import Api
from tests.e2e.conftest import World

pytestmark = [pytest.mark.spark]


def located(world: World, owner: User, path: str, **query: Any) -> Any:
    where = f"/service/replication/v1/repositories/{world.repo}/objects/locate"
    status, answer = Api(owner).call("GET", f"{where}?{urlencode({'ref': 'main', 'path': path} | query)}")
    assert status == 200, answer
    return answer


def read(answer: dict[str, Any]) -> bytes:
    given = requests.get(answer["url"], timeout=10)
    given.raise_for_status()
    return given.content


def test_each_region_that_has_an_object_gives_it(caught_up: World, owner: User) -> None:
    us, eu = caught_up.sandbox.source.name, caught_up.sandbox.destination.name
    for path, body in (("a.csv", b"one"), ("dir/b.csv", b"two")):
        for region in (us, eu):
            answer = located(caught_up, owner, path, prefer=region)
            assert (answer["region"], answer["commit"], answer["tried"]) == (region, caught_up.head(), [])
            assert read(answer) == body


def test_with_the_source_away_the_mirror_gives_what_was_promoted(caught_up: World, owner: User) -> None:
    promoted = caught_up.head()
    caught_up.sandbox.hold(kind="data", count=1)
    caught_up.commit({"a.csv": b"three"})
    us, eu = caught_up.sandbox.source.name, caught_up.sandbox.destination.name
    for service in ("lakefs", "s3"):
        caught_up.sandbox.server_faults(us, service, "error")
    answer = located(caught_up, owner, "a.csv")
    assert (answer["region"], answer["commit"], answer["fresh"], read(answer)) == (eu, promoted, False, b"one")
    assert [(one["region"], "can't be asked" in one["why"]) for one in answer["tried"]] == [(us, True), (us, False)]


def test_what_has_not_arrived_is_given_by_the_source_and_later_by_the_mirror(caught_up: World, owner: User) -> None:
    eu = caught_up.sandbox.destination.name
    caught_up.sandbox.hold(kind="data", count=1)
    second = caught_up.commit({"a.csv": b"three"})
    caught_up.sandbox.wait_replicated()
    answer = located(caught_up, owner, "a.csv", prefer=eu)
    assert (answer["region"], answer["commit"], read(answer)) == (caught_up.sandbox.source.name, second, b"three")
    assert answer["tried"] == [{"region": eu, "why": "it is not there"}]
    caught_up.sandbox.release()
    caught_up.work_until(lambda: caught_up.head() == second)
    answer = located(caught_up, owner, "a.csv", prefer=eu)
    assert (answer["region"], answer["commit"], read(answer)) == (eu, second, b"three")
