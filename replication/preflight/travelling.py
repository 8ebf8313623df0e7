"""The checks of what goes with the bytes of a rule's objects: tags, locks, a storage class."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from adapters.places.reader import PlaceReader
from adapters.places.travel_probe import probe_travel
from adapters.places.versions import VersionedPlace
from core.errors import LakeMirrorError
from core.installations.preflight import Check
from core.replicating.preflight import SOURCE
from core.travelling import checks as decide
from core.travelling.describing import SAME, Terms
from deployment.wiring import replication_jobs

Calls = dict[str, Callable[[], Any]]
PROBE_SECONDS = 6.0


def first_round(terms: Terms, places: Mapping[str, PlaceReader]) -> Calls:
    """Whether the buckets of both sides have locks."""
    if not terms.all:
        return {}
    return {f"{side}-locks": replication_jobs.describer_of(place).has_locks for side, place in places.items()}


def second_round(terms: Terms, source: PlaceReader | None, key: str | None) -> Calls:
    """What reads the tags of the source's first object; of a place that reads versions, those of its latest one."""
    if source is None or key is None or not (terms.all or terms.tags):
        return {}
    return {"source-tags": partial(_tags, source, key)}


def _tags(source: PlaceReader, key: str) -> Mapping[str, str]:
    version = ""
    if isinstance(source, VersionedPlace):
        version = next((one.id for one in reversed(source.chain(key)) if not one.marker), "")
    return replication_jobs.describer_of(source).tags(key, version)


def probes(
    terms: Terms, targets: Mapping[str, PlaceReader], answers: Mapping[str, Any], *, versions: bool = False
) -> Calls:
    """What writes, of each target that may be tried."""
    storage_class = "" if terms.storage_class == SAME else terms.storage_class
    if not (terms.all or storage_class):
        return {}
    calls: Calls = {}
    for side, place in targets.items():
        locks = answers.get(f"{SOURCE}-locks") is True and answers.get(f"{side}-locks") is True
        options = {"storage_class": storage_class, "tags": terms.all, "locks": locks, "seconds": PROBE_SECONDS}
        options |= {"versions": True} if versions else {}
        calls[f"{side}-travel"] = partial(probe_travel, place, **options)
    return calls


def of_source(terms: Terms, uri: str, answers: Mapping[str, Any], *, versions: bool = False) -> Iterator[Check]:
    """Whether its tags can be read."""
    if terms.all or terms.tags:
        yield decide.check_tags_readable(uri, answers.get("source-tags"), versions=versions)


def of_target(
    terms: Terms,
    side: str,
    uri: str,
    answers: Mapping[str, Any],
    untried: LakeMirrorError,
    *,
    versions: bool = False,
) -> Iterator[Check]:
    """What was tried of a target; `untried`: why it was not."""
    tried = answers.get(f"{side}-travel", untried)
    if terms.storage_class and terms.storage_class != SAME:
        yield decide.check_class(side, uri, terms.storage_class, tried)
    if terms.all:
        yield decide.check_tags_written(side, uri, tried, versions=versions)
        yield decide.check_locks(side, uri, answers[f"{SOURCE}-locks"], answers[f"{side}-locks"], tried)
