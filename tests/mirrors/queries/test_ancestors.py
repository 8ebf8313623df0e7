"""Which ancestors of a commit do some heads not lead to?"""

from __future__ import annotations

import random
from unittest import mock

import pytest

from core.mirroring.commit_graph import with_ancestors
from db import clock
from mirrors.models import Commit, Repository
from mirrors.queries import ancestors
from mirrors.queries.ancestors import ShownHistory
from tests.mirrors.factories import make_repository

pytestmark = pytest.mark.django_db


def random_history(source: Repository, chance: random.Random, size: int) -> dict[str, list[str]]:
    """Commits by their ids, with parents, which are rows before them."""
    parents: dict[str, list[str]] = {}
    for number in range(size):
        older = list(parents)[-6:]
        sha = f"{number:064x}"
        parents[sha] = (
            chance.sample(older, min(len(older), chance.choice([1, 1, 1, 2]))) if chance.random() < 0.9 else []
        )
    Commit.objects.bulk_create(
        Commit(repository=source, sha=sha, parents=its, creation_date=0, generation=0, version=1, seen_at=clock.now())
        for sha, its in parents.items()
    )
    return parents


@pytest.mark.parametrize("seed", range(12))
def test_what_no_head_leads_to_comes_parents_first(seed: int) -> None:
    chance, source = random.Random(seed), make_repository("lake", now=clock.now())
    parents = random_history(source, chance, 40)
    keys = dict(source.commits.values_list("sha", "pk"))
    shown = set(chance.sample(sorted(parents), chance.randrange(5))) | {"f" * 64}
    with mock.patch.multiple(ancestors, FIRST_WINDOW=2, LAST_WINDOW=8):
        history = ShownHistory(source, shown)
        for sha in chance.sample(sorted(parents), 12):
            beyond = with_ancestors(parents, [sha]) - with_ancestors(parents, shown)
            assert history.beyond(sha) == sorted(keys[commit] for commit in beyond)
            if chance.random() < 0.3:
                history.add(history.beyond(sha))
                shown.add(sha)
