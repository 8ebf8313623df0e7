"""Some short random lives of an export; LAKEMIRROR_EXPORT_SEEDS says how many."""

from __future__ import annotations

import os

import pytest

from rbac.models import User
from tests.exports.soak import soaking
from tests.mirrors.harness import Deployment

SEEDS = range(int(os.environ.get("LAKEMIRROR_EXPORT_SEEDS", "6")))


@pytest.mark.django_db
@pytest.mark.parametrize("seed", SEEDS)
def test_in_the_end_the_destination_is_the_commit(lm: Deployment, owner: User, seed: int) -> None:
    with soaking(lm, owner, seed) as life:
        assert life.live(25) == []
