"""What a rule needs that copies all versions: buckets that keep them, and whether a target takes them as they are."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from adapters.places.exact_probe import Exactness, probe_exact, probe_purge
from adapters.places.versions import ENABLED
from core.errors import Conflict, Invalid, LakeMirrorError, Unreachable
from core.exporting.deadline import Late
from core.installations.places import Place
from core.replicating.eligible import is_own
from deployment.wiring import replication_jobs
from replication.services.places import Target

log = logging.getLogger("lakemirror.replication")

PROBE_SECONDS = 6.0
_ENABLE = "Enable versioning of the bucket, or copy the latest objects alone: versions: latest"
_LATEST = "With conflict=newest all versions go between MinIO servers only: copy the latest objects alone"
_EMPTY = "Choose a place that is empty, old versions included, or allow that: overwrite of the API, --overwrite"


def check_versioned(source: Place, region: str, targets: Sequence[Target]) -> None:
    """Raises Invalid where a bucket keeps no versions, naming it, Conflict where nobody may know, and Unreachable."""
    for one in (Target("source.uri", region, source), *targets):
        place = replication_jobs.quick_versioned_place_of(one.region, one.place.uri)
        try:
            status = place.versioning()
        except Unreachable as error:
            raise Unreachable(error.message, field=one.field, hint=error.hint) from error
        except LakeMirrorError as error:
            text = f"whether the bucket '{place.bucket}' keeps versions is not known: {error.message}"
            raise Conflict(text, field=one.field, hint=error.hint) from error
        if status != ENABLED:
            text = f"versioning of the bucket '{place.bucket}' in {one.region} is {status.lower() or 'off'}"
            raise Invalid(text, field=one.field, hint=_ENABLE)


def check_no_versions(targets: Sequence[Target]) -> None:
    """Raises Conflict where a target has versions or delete markers, be they hidden: ours would come on top."""
    for target in targets:
        place = replication_jobs.quick_versioned_place_of(target.region, target.place.uri)
        page = place.versions("")
        if page.position is not None or any(not is_own(key) for key, _ in page.entries):
            text = f"{target.place.uri} has versions already, on top of which others would come"
            raise Conflict(text, field=target.field, hint=_EMPTY)


def check_all_exact(targets: Sequence[Target], tried: Sequence[Exactness]) -> None:
    """Raises Conflict for a target that does not take versions under their ids: what comes back to where it was written
    would be a new version there."""
    for target, exactness in zip(targets, tried, strict=True):
        if not exactness.exact:
            text = f"versions would get ids of their own at {target.place.uri}: {exactness.why}"
            raise Conflict(text, field=target.field, hint=_LATEST)


def purge_tried_at(target: Target) -> LakeMirrorError | None:
    """What keeps us from deleting a version of our own for good at a target; None: it was done there."""
    store = replication_jobs.quick_versioned_place_of(target.region, target.place.uri).store
    return probe_purge(store, target.place.uri, seconds=PROBE_SECONDS)


def exactness_of(target: Target) -> Exactness:
    """Whether a target takes versions under the source's ids: tried there. What can't be tried it does not."""
    store = replication_jobs.quick_versioned_place_of(target.region, target.place.uri).store
    try:
        return probe_exact(store, target.place.uri, seconds=PROBE_SECONDS)
    except Late:
        return Exactness(False, "not enough time was left")
    except LakeMirrorError as error:
        log.warning("whether %s takes versions as they are could not be tried: %s", target.place.uri, error)
        return Exactness(False, error.message)
