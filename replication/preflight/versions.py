"""The checks of a rule that copies all versions: whether both sides keep them, and whether their ids stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from adapters.places.exact_probe import Exactness
from adapters.places.versions import VersionedPlace
from core.errors import LakeMirrorError
from core.exporting import preflight as of_stores
from core.installations.preflight import Check
from core.replicating import preflight as decide
from replication.services.places import Target
from replication.services.versioning import exactness_of, purge_tried_at

Calls = dict[str, Callable[[], Any]]


def first_round(places: Mapping[str, VersionedPlace]) -> Calls:
    """What only reads, of each side."""
    asked: Calls = {f"{side}-versioning": place.versioning for side, place in places.items()}
    targets = {side: place for side, place in places.items() if side != decide.SOURCE}
    return asked | {f"{side}-versions": partial(place.versions, "") for side, place in targets.items()}


def second_round(targets: Mapping[str, Target], *, purges: bool) -> Calls:
    """What writes, of each target that may be tried."""
    calls: Calls = {f"{side}-exact": partial(exactness_of, target) for side, target in targets.items()}
    if purges:
        calls |= {f"{side}-purge": partial(purge_tried_at, target) for side, target in targets.items()}
    return calls


def of_purges(side: str, uri: str, answers: Mapping[str, Any], untried: LakeMirrorError) -> Check:
    """Whether versions may be deleted for good there. `untried`: why it was not tried."""
    return of_stores.check_right(side, decide.PURGE, uri, answers.get(f"{side}-purge", untried))


def of_place(side: str, places: Mapping[str, VersionedPlace], answers: Mapping[str, Any]) -> Iterator[Check]:
    """Whether its bucket keeps versions; nothing where nobody asks."""
    if side in places:
        yield decide.check_versioning(side, places[side].bucket, answers[f"{side}-versioning"])


def of_target(
    side: str, uri: str, answers: Mapping[str, Any], untried: LakeMirrorError, *, overwrite: bool
) -> Iterator[Check]:
    """Whether versions keep their ids there, and what it has already. `untried`: why it was not tried."""
    tried = answers.get(f"{side}-exact", untried)
    if isinstance(tried, Exactness):
        yield decide.check_exact(side, uri, tried.exact, tried.why, tried.left)
    else:
        yield decide.check_exact(side, uri, tried)
    yield decide.check_no_versions(side, uri, answers[f"{side}-versions"], overwrite=overwrite)
