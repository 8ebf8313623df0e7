"""What our user needs at both sides of a mirror, that is there or that somebody thinks of: as policies."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy

from core.bringing import ObjectReplication
from core.errors import Invalid, LakeMirrorError
from core.installations.replication_rights import Need, Side, lakefs_policy, store_policy
from core.sweeping import check_can_follow
from deployment.wiring import clients, region_settings
from installations import probes
from installations.needed_rights import Policies
from mirrors.models import Mirror, Repository
from mirrors.preflight.questions import Plan
from mirrors.queries.region_traffic import needs_of
from mirrors.services import placement

BothSides = dict[Side, tuple[str, Policies]]
"""By side: the region, and the policies there."""


def mirror_policies(mirror: Mirror, *, follows_gc: bool = False) -> BothSides:
    """Of a mirror that is there; `follows_gc`: as if it followed its source's garbage collection already. Raises
    Invalid where it can't."""
    if not follows_gc:
        return _policies(needs_of(mirror))
    check_can_follow({"follow_gc": True, "object_replication": mirror.object_replication})
    following = copy(mirror)
    following.follow_gc = True
    return _policies(needs_of(following))


def planned_policies(plan: Plan) -> BothSides:
    """Of a mirror that is to be made. Raises Invalid. A source that can't be asked has no place yet."""
    if not probes.is_name(plan.source_repository):
        raise Invalid(f"'{plan.source_repository[:80]}' is not a valid repository name", field="repository")
    check_can_follow({"follow_gc": plan.follows_gc, "object_replication": _replication(plan)})
    placement.check_name(plan.name)
    probes.check_namespace(plan.namespace)
    for field, region in (("source_region", plan.source_region), ("region", plan.region)):
        region_settings.require_lakefs(region, field)
    place = _namespace_of_source(plan)
    source = Need(Side.SOURCE, plan.source_repository, place, plan.tags, follows_gc=plan.follows_gc)
    both = {"managed": plan.managed, "follows_gc": plan.follows_gc}
    destination = Need(Side.DESTINATION, plan.name, plan.namespace, plan.tags, **both)
    return _policies([(plan.source_region, source), (plan.region, destination)])


def _replication(plan: Plan) -> ObjectReplication:
    return ObjectReplication.MANAGED if plan.managed else ObjectReplication.NATIVE


def _policies(needs: Iterable[tuple[str, Need]]) -> BothSides:
    return {need.side: (region, _of_one(need)) for region, need in needs}


def _of_one(need: Need) -> Policies:
    return Policies(lakefs_policy(f"Replication-{need.side.title()}-{need.repository}", [need]), store_policy([need]))


def _namespace_of_source(plan: Plan) -> str:
    """Where the source lies: as it was pinned, else as its lakeFS says; "" if that can't be asked yet."""
    pinned = Repository.objects.filter(region=plan.source_region, name=plan.source_repository).first()
    if pinned is not None:
        return pinned.namespace
    try:
        return clients.quick_lakefs(plan.source_region).get_repository(plan.source_repository).storage_namespace
    except LakeMirrorError:
        return ""
