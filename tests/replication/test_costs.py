"""What a rule would cost: by API, from stores in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from deployment import config
from deployment.config import Replication
from deployment.config_sections import Prices
from replication.models import Rule
from replication.preflight import cost
from tests.api import Api
from tests.replication.test_passes import keys_of
from tests.replication.test_passes_api import RULES, WISH
from tests.replication.world import World, silent

pytestmark = pytest.mark.django_db


def amounts(told: dict[str, Any], at: int = 0) -> dict[str, Any]:
    return {one["name"]: one for one in told["targets"][at]["amounts"]}


def test_a_small_place_is_looked_at_whole_and_without_prices_numbers_are_told(w: World, api: Api) -> None:
    keys_of(w, 10)
    w.away.buckets["out"] = {"k0001": b"k0001", "k0002": b"longer than it", "foreign": b"x"}
    status, told = api.call("POST", f"{RULES}/estimate", WISH)
    assert status == 200, told
    assert (told["whole"], told["sampled_objects"], told["total_objects"], told["currency"]) == (True, 10, 10, None)
    first, second = told["targets"]
    assert first["objects"] == {"least": 9, "likely": 9, "most": 9} and first["bytes"]["likely"] == 45
    assert second["objects"]["likely"] == 10 and (first["seconds"], first["once"]) == (None, None)
    found = amounts(told)
    assert (found["put"]["likely"], found["egress"]["likely"], found["storage"]["likely"]) == (9, 45, 45 - 14)
    assert found["put"]["cost"] is None and not Rule.objects.exists() and w.away.written == []
    assert found["list_month"]["likely"] == 2 * 30 * 86_400 // 300


def test_prices_make_it_money_and_a_limit_makes_it_time(w: World, api: Api) -> None:
    keys_of(w, 10)
    prices = Prices(currency="EUR", put="5", egress="90000000")
    with mock.patch.object(config, "current", wraps=config.current) as current:
        real = current()
        current.side_effect = lambda: replace(real, replication=Replication(prices=prices))
        body = WISH | {"targets": [WISH["targets"][0] | {"bytes_per_second": 10}]}
        told = api.call("POST", f"{RULES}/estimate", body)[1]
    assert told["currency"] == "EUR" and told["targets"][0]["seconds"] == {"least": 5, "likely": 5, "most": 5}
    assert amounts(told)["put"]["cost"] == {"least": 0.05, "likely": 0.05, "most": 0.05}
    assert told["targets"][0]["once"]["likely"] == 4.55 and told["targets"][0]["monthly"] is None


def test_what_takes_longer_is_a_least_of_a_wish_and_a_span_of_a_rule(w: World, api: Api) -> None:
    keys_of(w, 30)
    with mock.patch.object(cost, "SECONDS", 0.0):
        told = api.call("POST", f"{RULES}/estimate", WISH)[1]
        assert (told["whole"], told["sampled_objects"], told["total_objects"]) == (False, 3, None)
        assert told["targets"][0]["objects"] == {"least": 3, "likely": 3, "most": None}
        w.rule()
        w.scan()
        told = api.call("POST", f"{RULES}/r/estimate")[1]
    assert (told["whole"], told["sampled_objects"], told["total_objects"]) == (False, 3, 30)
    assert told["targets"][0]["objects"]["likely"] == 30 and told["targets"][0]["objects"]["least"] == 3


def test_a_store_that_does_not_answer_and_a_wrong_body_are_told(w: World, api: Api) -> None:
    keys_of(w, 3)
    w.rule()
    w.away.before = silent("LIST")
    assert api.call("POST", f"{RULES}/r/estimate")[0] == 503
    status, told = api.call("POST", f"{RULES}/estimate", WISH | {"source": {"region": "mars", "uri": "s3://src-a"}})
    assert (status, told["field"]) == (400, "source.region")
    assert api.call("POST", f"{RULES}/none/estimate")[0] == 404
    Rule.objects.update(versions="all")
    assert api.call("POST", f"{RULES}/r/estimate")[0] == 409
