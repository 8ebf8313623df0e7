"""Some short random lives of a rule; LAKEMIRROR_RULE_SEEDS says how many."""

from __future__ import annotations

import os

import pytest

from tests.mirrors.harness import Deployment
from tests.replication.soak import soaking
from tests.replication.version_soak import VersionSoak
from tests.replication.version_world import version_world
from tests.replication.ways_soak import WaysSoak
from tests.replication.world import World

SEEDS = range(int(os.environ.get("LAKEMIRROR_RULE_SEEDS", "3")))


@pytest.mark.django_db
@pytest.mark.parametrize("seed", SEEDS)
def test_in_the_end_the_targets_have_what_the_source_has(w: World, seed: int) -> None:
    with soaking(w, seed) as life:
        assert life.live(40) == []
        assert life.judged > 0


@pytest.mark.django_db
@pytest.mark.parametrize("seed", SEEDS[: max(2, len(SEEDS) // 3)])
def test_in_the_end_the_targets_have_all_versions_in_their_order(lm: Deployment, seed: int) -> None:
    with version_world(lm) as w, soaking(w, seed, VersionSoak) as life:
        assert life.live(25) == []
        assert life.judged > 0


@pytest.mark.django_db
@pytest.mark.parametrize("seed", SEEDS)
def test_in_the_end_the_targets_have_nothing_else_of_a_rule_that_follows_deletions(w: World, seed: int) -> None:
    with soaking(w, seed, markers=True) as life:
        assert life.live(40) == []


@pytest.mark.django_db
@pytest.mark.parametrize("seed", SEEDS)
def test_in_the_end_all_places_have_the_same_where_rules_lead_both_ways(w: World, seed: int) -> None:
    with soaking(w, seed, WaysSoak) as life:
        assert life.live(40) == []
        assert life.judged > 0
