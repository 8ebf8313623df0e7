"""Which places a rule may have: its own apart from each other, its targets apart from whatever else is written to.

Where a rule reads is nobody's business but of who may read there: a target of one rule may be the source of another
one, as long as nothing leads back to where it came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from core.access.rule_rights import rule_arn
from core.errors import Conflict, Invalid, LakeMirrorError, NotFound, Unreachable
from core.installations.places import Place
from core.replicating.eligible import is_own
from core.replicating.wishes import RuleWish, TargetWish, told_overlap
from deployment import config
from deployment.wiring import clients, region_settings, replication_jobs
from installations.claimed_places import claimed_places
from mirrors.services.placement import repositories_of
from rbac import services as rbac
from replication.models import Link, Rule
from replication.queries.lakefs_places import places_of_lakefs
from replication.services.ways_back import Target, check_no_way_back, place_of_link

APP = "replication"
_APART = "Choose a place of its own for the target"
_OVERWRITE = "Choose an empty place, or allow that: overwrite of the API, --overwrite of the command"
_SEE_REPOSITORIES = ("fs:ListRepositories", "*")
_SEE_EXPORTS = ("fs:ReadBranch", "*")
_SEE_RULES = ("fs:ListReplicationRules", "*")
HIDDEN = "a place that you may not see"


def targets_of(wish: RuleWish) -> list[Target]:
    """Where a rule would write. Raises Invalid for a region that there is not."""
    return [target_of(target, f"targets.{number}.") for number, target in enumerate(wish.targets)]


def target_of(target: TargetWish, prefix: str = "") -> Target:
    """One of them; `prefix`: what its fields' names begin with. Raises the same."""
    _check_region(target.region, f"{prefix}region")
    return Target(f"{prefix}uri", target.region, region_settings.place(target.region, target.uri))


def store_of(wish: TargetWish) -> str:
    """Which store that is; "" where nobody knows."""
    return region_settings.place(wish.region, wish.uri).store or ""


def source_of(wish: RuleWish) -> Place:
    """Where it would read. Raises Invalid for a region that there is not."""
    _check_region(wish.region, "source.region")
    return region_settings.place(wish.region, wish.uri)


def _check_region(region: str, field: str) -> None:
    try:
        region_settings.installation(region)
    except Invalid as error:
        raise Invalid(error.message, field=field, hint=error.hint) from error


def check_apart_from_itself(source: Place, targets: Sequence[Target]) -> None:
    """Raises Invalid where a target lies in the source or in another target, or holds it."""
    for number, target in enumerate(targets):
        if target.place.overlaps(source):
            raise Invalid(told_overlap(target.place.uri, source.uri, "the source"), field=target.field, hint=_APART)
        for other in targets[:number]:
            if target.place.overlaps(other.place):
                told = told_overlap(target.place.uri, other.place.uri, f"another target, {other.place}")
                raise Invalid(told, field=target.field, hint=_APART)


def check_apart(
    actor: Any, source: Place, targets: Sequence[Target], itself: Rule | None = None, *, both_ways: bool = False
) -> None:
    """By all that is stored: raises Invalid where a target overlaps a mirror's place, a repository's namespace or an
    export's, Conflict where it overlaps another rule's target, or where rules would lead back to the source.

    `both_ways`: the rule lets the newer object stay. Such rules may share a target, and lead back to the very source.
    """
    taken = [*_of_mirrors(), *_of_others(), *_of_state()]
    for target in targets:
        for place, whose, right in taken:
            if target.place.overlaps(place):
                told = _told(actor, target.place, place, whose, right)
                raise Invalid(told, field=target.field, hint=_APART)
    links = list(_links(itself))
    for target in targets:
        for link in links:
            shared = both_ways and link.rule.both_ways and target.place == place_of_link(link)
            if target.place.overlaps(place_of_link(link)) and not shared:
                right = ("fs:ReadReplicationRule", rule_arn(link.rule.name))
                told = _told(actor, target.place, place_of_link(link), whose_link(link), right)
                raise Conflict(told, field=target.field, hint=_APART)
    check_no_way_back(actor, source, targets, links, both_ways=both_ways)


def check_beside(actor: Any, rule: Rule, target: Target) -> None:
    """May a rule that there is have this target, too? As both checks above, with its own targets of now."""
    source = source_place(rule)
    check_apart_from_itself(source, [target])
    for link in rule.links.order_by("number"):
        place = place_of_link(link)
        if target.place.overlaps(place) and link.removing:
            text = f"{target.place} overlaps {place}, a target of this rule that is being removed"
            raise Conflict(text, field=target.field, hint="Try again in a minute or two")
        if target.place.overlaps(place):
            told = told_overlap(target.place.uri, place.uri, f"another target of this rule, {place}")
            raise Invalid(told, field=target.field, hint=_APART)
    check_apart(actor, source, [target], itself=rule, both_ways=rule.both_ways)


def source_place(rule: Rule) -> Place:
    """Where a rule reads. Raises Invalid for a region that is not configured any more."""
    _check_region(rule.region, "source.region")
    return region_settings.place(rule.region, rule.uri)


def _told(actor: Any, target: Place, place: Place, whose: str, right: tuple[str, str]) -> str:
    """What is taken, and by whom as far as the actor may see that."""
    if rbac.allowed(actor, *right):
        return f"{target} and {place}, {whose}, overlap"
    return f"{target} overlaps {HIDDEN}"


Taken = tuple[Place, str, tuple[str, str]]
"""A place, whose it is, and the right of those who are told so."""


def _of_mirrors() -> Iterator[Taken]:
    yield from ((place, whose, _SEE_REPOSITORIES) for place, whose in places_of_lakefs())


def _of_others() -> Iterator[Taken]:
    yield from ((place, whose, _SEE_EXPORTS) for place, whose in claimed_places(but=APP))


def _of_state() -> Iterator[Taken]:
    """Where LakeMirror keeps what it knows of rules, if the configuration names a place for that."""
    state = config.current().replication.state
    if state.uri:
        whose = "where LakeMirror keeps what it knows of rules"
        yield region_settings.place(state.region, state.uri.rstrip("/")), whose, _SEE_RULES


def _links(itself: Rule | None) -> Iterator[Link]:
    """Those of all other rules, also of one that is just being deleted: a copy that was begun may still arrive."""
    rows = Link.objects.select_related("rule").order_by("rule", "number")
    yield from rows.exclude(rule=itself.pk) if itself is not None and itself.pk else rows


def whose_link(link: Link) -> str:
    """In words whose place that is."""
    return f"where the rule '{link.rule.name}' copies to"


# --- what others have to tell -----------------------------------------------------------------------------------------


def check_apart_from_repositories(actor: Any, targets: Sequence[Target]) -> None:
    """Raises Invalid where a target overlaps the storage namespace of a repository, in whichever lakeFS whose store may
    hold that place: lakeFS does not know of rules, and its garbage collection deletes. Unreachable."""
    regions = sorted({near for target in targets for near in _regions_of(target.place)})
    for near in regions:
        for repository in repositories_of(clients.quick_lakefs(near), near, "lakeFS of"):
            namespace = region_settings.place(near, repository.storage_namespace)
            for target in targets:
                if target.place.overlaps(namespace):
                    whose = f"the storage namespace of the repository '{repository.id}' in {near}"
                    told = _told(actor, target.place, namespace, whose, _SEE_REPOSITORIES)
                    raise Invalid(told, field=target.field, hint=_APART)


def _regions_of(place: Place) -> set[str]:
    """Those with a lakeFS whose repositories may lie there."""
    known = region_settings.lakefs_names()
    return {near for near in known if place.in_store_of(region_settings.place(near, place.uri))}


def check_reached(source: Place, region: str, targets: Sequence[Target]) -> None:
    """Raises Unreachable where nothing answers for the store of a place. What a store answers is told by the link: who
    may not list now may be allowed to later, and a bucket may still be made."""
    for one in (Target("source.uri", region, source), *targets):
        try:
            replication_jobs.quick_place_of(one.region, one.place.uri).answers()
        except Unreachable as error:
            hint = error.hint or "Make sure that this machine can reach it, then try again"
            raise Unreachable(error.message, field=one.field, hint=hint) from error
        except LakeMirrorError:
            continue


def check_empty(targets: Sequence[Target]) -> None:
    """Raises Conflict where something lies at a target, or where nobody can tell, as of a bucket that somebody has yet
    to make: it would be replaced if the source has another object of that key. Unreachable."""
    for target in targets:
        try:
            listing = replication_jobs.quick_place_of(target.region, target.place.uri).listing("")
        except NotFound as error:
            text = f"{target.place.uri} does not exist, so nobody knows what will be there: {error.message}"
            hint = f"Create the bucket in the store of {target.region}, then try again"
            raise Conflict(text, field=target.field, hint=hint) from error
        except Unreachable as error:
            raise Unreachable(error.message, field=target.field, hint=error.hint) from error
        except LakeMirrorError as error:
            text = f"{target.place.uri} can't be listed, so nobody knows what would be replaced there: {error.message}"
            raise Conflict(text, field=target.field, hint=_OVERWRITE) from error
        if listing.more or any(not is_own(item.key) for item in listing.items):
            text = f"{target.place.uri} is not empty: what differs from the source there would be replaced"
            raise Conflict(text, field=target.field, hint=_OVERWRITE)


def places() -> Iterator[tuple[Place, str]]:
    """All that rules write to, for those who look for a place of their own: who may see which rule is not known here,
    so none is named."""
    for link in Link.objects.order_by("pk"):
        yield place_of_link(link), "where a replication rule copies to"
    yield from ((place, whose) for place, whose, _ in _of_state())


def forget(place: Place) -> None:
    """Somebody else has a place from now on: a rule's targets are never given away, so there is nothing to forget."""
