"""Short seeds of the soak; `scripts/soak` runs long ones."""

from __future__ import annotations

import pytest

from tests.mirrors.harness import deployment, one_by_one
from tests.mirrors.soak import Soak


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("seed", range(6))
def test_no_reader_ever_sees_a_torn_commit_and_all_catch_up(seed: int) -> None:
    with one_by_one(), deployment() as lm:
        lm.add_mirror()
        soak = Soak(lm, seed)
        for _ in range(150):
            soak.step()
            assert soak.problems == [], soak.stages[-10:]
        assert soak.settle() == []
        assert soak.promotions > 5
        assert soak.blamed() == []
