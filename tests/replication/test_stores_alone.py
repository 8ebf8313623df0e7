"""Rules from and to stores without a lakeFS: places like all others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
from django.test import Client

from core.installations.places import store_at
from core.installations.settings import Secrets, Wish
from deployment import config
from deployment.wiring import replication_spark
from installations import refresh
from installations.models import Installation
from installations.services import installation_create, installation_delete, installation_update
from jobs import duties
from rbac.models import User
from replication.models import Link, Rule
from replication.services import places
from tests.api import Api
from tests.fakes import takes_everything
from tests.mirrors.harness import forget_installations
from tests.replication.world import Store, World

V1 = "/service/replication/v1"
pytestmark = pytest.mark.django_db

RAW, COLD = "raw", "cold"
BODY: dict[str, Any] = {
    "name": "r",
    "source": {"region": RAW, "uri": "s3://src"},
    "targets": [{"region": COLD, "uri": "s3://out"}],
}


@pytest.fixture(autouse=True)
def stores(owner: User, w: World) -> Iterator[None]:
    """Two stores without a lakeFS, each with its own buckets of the usual names."""
    forget_installations()
    for name in (RAW, COLD):
        wish = Wish(name, store_endpoint=f"http://{name}:9000", store_access_key_id=f"AKIA{name.upper()}")
        installation_create(actor=owner, wish=wish, secrets=Secrets(store=f"secret-of-{name}"))
        w.stores[name] = Store()
    with mock.patch("deployment.wiring.region_settings.store_at", store_at):
        yield
    forget_installations()


def put(w: World, key: str, data: bytes = b"data") -> None:
    w.stores[RAW].put_plainly("src", key, data)


def created(api: Api) -> Rule:
    status, told = api.call("POST", f"{V1}/rules", BODY)
    assert status == 201, told
    return Rule.objects.get()


def test_what_is_in_one_comes_to_the_other(w: World, api: Api) -> None:
    for key in ("a", "b/c"):
        put(w, key)
    created(api)
    w.work()
    assert w.there(COLD) == {"a": b"data", "b/c": b"data"}
    assert api.call("GET", f"{V1}/rules/r")[1]["word"] == "Up to date"
    put(w, "d")
    bearer = {"Authorization": f"Bearer {config.current().hook_secret(RAW)}"}
    event = {
        "Records": [{"eventName": "s3:ObjectCreated:Put", "s3": {"bucket": {"name": "src"}, "object": {"key": "d"}}}]
    }
    told = Client().post("/hooks/s3/raw", event, content_type="application/json", headers=bearer)
    assert "1 object of replication rules noted" in told.json()["message"]
    w.work()
    assert w.there(COLD)["d"] == b"data"


def test_between_such_a_store_and_one_with_a_lakefs(w: World, api: Api) -> None:
    put(w, "a")
    body = BODY | {"targets": [{"region": "eu-west-1", "uri": "s3://out"}, {"region": COLD, "uri": "s3://two"}]}
    assert api.call("POST", f"{V1}/rules", body)[0] == 201
    w.work()
    assert (w.there(), w.there(COLD, "two")) == ({"a": b"data"}, {"a": b"data"})


def test_no_lakefs_is_asked_whose_repositories_may_lie_there(w: World, api: Api) -> None:
    """Not even those of other stores: they are none of these places."""
    with mock.patch("deployment.wiring.clients.quick_lakefs", side_effect=AssertionError("asked")):
        created(api)


def test_a_store_that_it_shares_with_a_lakefs_is_still_asked_about(w: World, api: Api, owner: User) -> None:
    """The same endpoint as eu-west-1's: that one's repositories lie there."""
    endpoint = config.current().store("eu-west-1").endpoint
    wish = Wish("other", store_endpoint=endpoint, store_access_key_id="AKIAOTHER")
    installation_create(actor=owner, wish=wish, secrets=Secrets(store="secret-of-other"))
    w.stores["other"] = Store()
    w.lm.eu.add_repository("theirs", "s3://out/theirs")
    status, told = api.call("POST", f"{V1}/rules", BODY | {"targets": [{"region": "other", "uri": "s3://out"}]})
    assert status == 400 and "the repository 'theirs' in eu-west-1" in told["message"], told


@pytest.mark.parametrize(
    ("targets", "status"),
    [
        ([{"region": RAW, "uri": "s3://src/in"}], 400),
        ([{"region": COLD, "uri": "s3://src"}], 201),
        ([{"region": "nowhere", "uri": "s3://out"}], 400),
    ],
)
def test_places_are_told_apart_by_their_stores(w: World, api: Api, targets: list[dict[str, str]], status: int) -> None:
    assert api.call("POST", f"{V1}/rules", BODY | {"targets": targets})[0] == status


def test_a_preflight_asks_both_stores(w: World, api: Api) -> None:
    put(w, "a")
    with mock.patch("replication.preflight.checks.probe", takes_everything):
        status, told = api.call("POST", f"{V1}/rules/preflight", BODY)
    assert (status, told["ok"]) == (200, True), told
    assert "source-bucket" in {check["id"] for check in told["checks"]}


def test_its_duties_are_in_the_queue_of_who_serves_it(w: World, api: Api) -> None:
    created(api)
    assert duties.queue_name("replication-link", RAW) == config.current().worker_queue
    told = config.current()
    assert RAW in told.served and COLD in told.served


def test_executors_get_its_keys_sealed(w: World) -> None:
    located = replication_spark.location_of(RAW, "s3://src")
    assert (located.region, located.endpoint) == (RAW, "http://raw:9000")
    assert located.access.sealed and "secret-of-raw" not in repr(located)


def test_an_installation_that_a_rule_uses_is_not_deleted(w: World, api: Api) -> None:
    created(api)
    status, told = api.call("DELETE", f"{V1}/installations/{COLD}")
    assert status == 409 and "is used by 1 replication rule" in told["message"]


def test_nor_one_that_has_the_state_of_rules(w: World, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    own = config.from_file()
    state = replace(own.replication.state, region=COLD, uri="s3://two/state")
    kept = replace(own, replication=replace(own.replication, state=state))
    monkeypatch.setattr(config, "from_file", lambda: kept)
    forget_installations()
    refresh.read()
    status, told = api.call("DELETE", f"{V1}/installations/{COLD}")
    assert status == 409 and "is used by 1 place of state (replication.state)" in told["message"], told
    assert api.call("DELETE", f"{V1}/installations/{RAW}")[0] == 204


def at_the_store_of_a_lakefs(w: World, owner: User) -> dict[str, bytes]:
    """COLD is at the endpoint of eu-west-1 by now, where a repository lies; gives the objects of its bucket."""
    wish = Installation.objects.get(region=COLD).wish
    at = replace(wish, store_endpoint=config.current().store("eu-west-1").endpoint)
    installation_update(actor=owner, region=COLD, wish=at, secrets=Secrets(store="secret-of-cold"))
    w.lm.eu.add_repository("theirs", "s3://out/theirs")
    w.stores[COLD] = w.away
    w.away.has_already("out", "theirs/a", b"theirs")
    return w.away.buckets["out"]


def test_nothing_is_written_where_nobody_looked(w: World, api: Api, owner: User) -> None:
    """A link that has not written yet has no pin that its target could lack."""
    put(w, "theirs/a")
    created(api)
    there = at_the_store_of_a_lakefs(w, owner)
    w.work()
    told = api.call("GET", f"{V1}/rules/r")[1]["links"][0]
    assert there == {"theirs/a": b"theirs"}
    assert told["state"] == "blocked" and "cold is another store by now" in told["stale_message"], told
    assert api.call("POST", f"{V1}/rules/r/links/1/confirm-target", {})[0] == 200
    w.work()
    assert there["theirs/a"] == b"data"


def test_nor_by_a_target_that_came_later_and_all_is_well_where_it_moves_back(w: World, api: Api, owner: User) -> None:
    put(w, "theirs/a")
    assert api.call("POST", f"{V1}/rules", BODY | {"targets": [{"region": RAW, "uri": "s3://out"}]})[0] == 201
    w.work()
    assert api.call("POST", f"{V1}/rules/r/links", BODY["targets"][0])[0] == 201
    own, wish = w.stores[COLD], Installation.objects.get(region=COLD).wish
    there = at_the_store_of_a_lakefs(w, owner)
    w.work()
    assert there == {"theirs/a": b"theirs"}
    w.stores[COLD] = own
    installation_update(actor=owner, region=COLD, wish=wish, secrets=Secrets(store="secret-of-cold"))
    w.work()
    assert w.there(COLD) == {"theirs/a": b"data"} and Link.objects.get(number=2).stale_since is None


@pytest.mark.parametrize("later", [False, True], ids=["rule", "target"])
def test_no_rule_is_stored_for_an_installation_that_was_just_deleted(
    w: World, api: Api, owner: User, monkeypatch: pytest.MonkeyPatch, later: bool
) -> None:
    """This request sees what holds at its beginning."""
    if later:
        assert api.call("POST", f"{V1}/rules", BODY | {"targets": [{"region": RAW, "uri": "s3://out"}]})[0] == 201
    look = places.check_empty

    def deleted_meanwhile(targets: Any) -> None:
        look(targets)
        with mock.patch("installations.refresh.read"):
            installation_delete(actor=owner, region=COLD)

    monkeypatch.setattr(places, "check_empty", deleted_meanwhile)
    path, body = ("rules/r/links", BODY["targets"][0]) if later else ("rules", BODY)
    status, told = api.call("POST", f"{V1}/{path}", body)
    assert status == 409 and "the installation 'cold' has just been deleted" in told["message"], told
    assert not Link.objects.filter(region=COLD).exists()


def test_a_rule_survives_a_lakefs_that_comes_and_goes(w: World, api: Api) -> None:
    put(w, "a")
    created(api)
    w.work()
    settings: dict[str, Any] = {"store_endpoint": "http://cold:9000", "store_access_key_id": "AKIACOLD"}
    lake = {"lakefs_endpoint": "http://lakefs.cold", "lakefs_access_key_id": "AKIALAKE"}
    given = settings | lake | {"lakefs_secret_access_key": "lakefs-of-cold"}
    assert api.call("PUT", f"{V1}/installations/{COLD}", given)[0] == 200
    put(w, "b")
    w.later(400)
    w.work()
    gone = settings | dict.fromkeys(lake, "")
    assert api.call("PUT", f"{V1}/installations/{COLD}", gone)[0] == 200
    put(w, "c")
    w.later(400)
    w.work()
    assert sorted(w.there(COLD)) == ["a", "b", "c"] and Link.objects.get().region == COLD


def test_the_form_of_a_deployment_without_a_store_says_what_to_do(
    olga: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = replace(config.from_file(), regional_endpoint="", dst_endpoints={}, stores={}, serve_regions=())
    monkeypatch.setattr(config, "from_file", lambda: own)
    config.put_together(own)
    with mock.patch("installations.refresh.read"):
        page = olga.get("/replication/new/").content.decode()
        assert "No store is known yet" in page
        for path, words in (("/mirrors/new/", "Mirrors need a lakeFS"), ("/exports/new/", "Exports need a lakeFS")):
            assert words in olga.get(path).content.decode(), path
        for path in ("/", "/mirrors/", "/map/", "/exports/", "/replication/", "/jobs/", "/installations/"):
            assert olga.get(path, follow=True).status_code == 200, path
        assert "No lakeFS" in olga.get("/").content.decode()
