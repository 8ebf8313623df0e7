"""Does the model find a broken engine? Two mutants here; all by `scripts/soak promise --sabotage`."""

from __future__ import annotations

import pytest

from rbac.models import User
from tests.promise.sabotage import MUTANTS, Mutant, hunt

BRIEFLY = ("certificates are given on trust", "the source's identity is not asked")
"""Found by one life in four or so; others by one in forty."""


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("mutant", [one for one in MUTANTS if one.name in BRIEFLY], ids=str)
def test_the_model_finds_a_mutant(owner: User, mutant: Mutant) -> None:
    assert hunt(owner, mutant, range(40), length=60) is not None, mutant.told


def test_there_are_ten_mutants_and_these_two_are_among_them() -> None:
    assert len({mutant.name for mutant in MUTANTS}) >= 10
    assert {mutant.name for mutant in MUTANTS}.issuperset(BRIEFLY)
