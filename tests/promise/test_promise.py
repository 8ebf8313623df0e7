"""Short lives of a mirror with a reader who knows everything; `scripts/soak promise` runs long ones."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from rbac.models import User
from tests.promise.lives import live, world
from tests.promise.world import ACTIONS

OFTEN = [name for name, action in ACTIONS.items() for _ in range(action.weight // 4)]
SEEDS = range(2)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """What the engine logs of faults and losses is no news here."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("seed", SEEDS)
def test_no_promise_is_broken_in_a_life(owner: User, seed: int) -> None:
    life = live(owner, seed)
    assert not life.problems, f"{life}\nagain: ./scripts/soak promise --shrink --seed {seed}"
    assert life.moves > 3


@pytest.mark.django_db(transaction=True)
def test_no_promise_is_broken_whatever_is_done_in_whatever_order(owner: User) -> None:
    """Hypothesis chooses the steps, the same ones each time, and tells of those that broke a promise."""

    class Promise(RuleBasedStateMachine):
        """A world on empty tables."""

        def __init__(self) -> None:
            super().__init__()
            self.opened = ExitStack()
            self.world: Any = self.opened.enter_context(world(owner, 0))

        @rule(name=st.sampled_from(OFTEN), seed=st.integers(0, 2**32 - 1))
        def something_happens(self, name: str, seed: int) -> None:
            self.world.step(name, seed)
            assert self.world.problems == []

        def teardown(self) -> None:
            with self.opened:
                if not self.world.problems:
                    self.world.step("settle", 0)
                assert self.world.problems == []

    steps = settings(
        max_examples=4,
        stateful_step_count=30,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Promise, settings=steps)
