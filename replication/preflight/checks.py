"""Asks everything that would keep a rule from working, and stores nothing.

What reads is asked while one types. What writes (a probe below each target, removed at once) only where somebody asked
for it, and never at a place that is somebody else's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from adapters.places.reader import PlaceReader
from adapters.places.versions import VersionedPlace
from adapters.s3.store import split_uri
from adapters.s3.write_probe import TRIED, Probed, probe
from core.errors import LakeMirrorError
from core.exporting import preflight as of_stores
from core.exporting.destinations import check_place
from core.installations.places import Place
from core.installations.preflight import Check, NotAsked
from core.replicating import preflight as decide
from core.replicating import wishes
from core.replicating.merging import Listing
from core.replicating.wishes import RuleWish, TargetWish
from core.travelling.describing import Terms
from db import clock
from deployment import config
from deployment.wiring import region_settings, replication_jobs
from installations.probes import Answers, ask
from mirrors.preflight.checks import Preflight
from rbac import services as rbac
from replication.models import Rule
from replication.preflight import travelling, versions
from replication.services import places
from replication.services.places import Target
from replication.services.rules import TRAVELLING, check_unused, rights_to_create
from replication.services.targets import rights_to_add

PROBE_SECONDS = 6.0
NOT_TRIED = NotAsked("nothing is written while you type", hint="Leave the field, or click Check")
_UNPLACED = NotAsked("the target can't be written to")
_NO_SOURCE = NotAsked("the source is not known")


class _Plan:
    """A rule that somebody thinks of: its places, as far as they are any. `rule`: one that there is, which shall have
    the wish's only target, too."""

    def __init__(self, wish: RuleWish, rule: Rule | None = None) -> None:
        self.wish = wish
        self.rule = rule
        self.wrong: dict[str, LakeMirrorError] = {}
        self.places: dict[str, Target] = {}
        self._add(decide.SOURCE, wish.region, wish.uri, "source")
        for number, target in enumerate(wish.targets, 1):
            self._add(decide.target_side(number), target.region, target.uri, f"targets.{number - 1}")

    def _add(self, side: str, region: str, uri: str, field: str) -> None:
        try:
            checked = check_place(uri, f"{field}.uri")
            region_settings.installation(region)
            self.places[side] = Target(f"{field}.uri", region, region_settings.place(region, checked))
        except LakeMirrorError as error:
            self.wrong[side] = error

    @property
    def source(self) -> Place | None:
        """Where it would read, if that is an address."""
        return self.places[decide.SOURCE].place if decide.SOURCE in self.places else None

    @property
    def targets(self) -> dict[str, Target]:
        """Where it would write, by side."""
        return {side: target for side, target in self.places.items() if side != decide.SOURCE}

    @property
    def versioned(self) -> dict[str, VersionedPlace]:
        """What reads the versions of each place; nothing where only the latest are copied."""
        if not self.wish.all_versions:
            return {}
        quick = replication_jobs.quick_versioned_place_of
        return {side: quick(target.region, target.place.uri) for side, target in self.places.items()}

    @property
    def terms(self) -> Terms:
        """What would go with the bytes, as far as that can be said; what is wrong else the service tells."""
        try:
            wishes.check_travelling({name: getattr(self.wish, name) for name in TRAVELLING})
        except LakeMirrorError:
            return Terms()
        return self.wish.terms

    @property
    def readers(self) -> dict[str, PlaceReader]:
        """What reads each place, by side."""
        return {side: self.reader(side) for side in self.places}

    def reader(self, side: str) -> PlaceReader:
        """What reads a place, for somebody who waits."""
        target = self.places[side]
        return replication_jobs.quick_place_of(target.region, target.place.uri)


def check_plan(*, actor: Any, wish: RuleWish, writing: bool) -> Preflight:
    """Every check of a rule that somebody thinks of; `writing`: with probes. Raises Denied unless the actor might
    create it; nothing else is raised."""
    rbac.require(actor, *rights_to_create(wish))
    deciding = decide.deciding(len(wish.targets), versions=wish.all_versions, markers=wish.markers, purges=wish.purges)
    return _checked(actor, _Plan(wish), deciding, writing)


def check_target_plan(*, actor: Any, rule: Rule, target: TargetWish, overwrite: bool, writing: bool) -> Preflight:
    """The same of one more target of a rule that there is. Raises Denied unless the actor might add it."""
    rbac.require(actor, *rights_to_add(rule.name, target.uri))
    same = {name: getattr(rule, name) for name in ("versions", "purges", *TRAVELLING)}
    wish = RuleWish(rule.name, rule.region, rule.uri, [target], overwrite=overwrite, **same)
    deciding = decide.deciding(1, versions=wish.all_versions, purges=wish.purges) - {"name"}
    return _checked(actor, _Plan(wish, rule), deciding, writing)


def _checked(actor: Any, plan: _Plan, deciding: frozenset[str], writing: bool) -> Preflight:
    first = {f"{side}-listing": partial(plan.reader(side).listing, "") for side in plan.places}
    first |= {f"{side}-clock": plan.reader(side).clock_ahead for side in plan.places}
    first |= travelling.first_round(plan.terms, plan.readers)
    answers: Answers = ask(first | versions.first_round(plan.versioned))
    apart = _apart(actor, plan)
    answers |= ask(_second_round(plan, answers, apart, writing))
    return Preflight(list(_checks(plan, answers, apart)), clock.now(), deciding)


def _apart(actor: Any, plan: _Plan) -> dict[str, LakeMirrorError | None]:
    """Of each target: why it can't be this rule's; None: nothing is against it."""
    found: dict[str, LakeMirrorError | None] = {}
    before: list[Target] = []
    for side, target in plan.targets.items():
        found[side] = _told(partial(_check_one, actor, plan, [*before, target]))
        before.append(target)
    return found


def _check_one(actor: Any, plan: _Plan, targets: list[Target]) -> None:
    if plan.source is None:
        raise _NO_SOURCE
    if plan.rule is not None:
        places.check_beside(actor, plan.rule, targets[-1])
    else:
        places.check_apart_from_itself(plan.source, targets)
        places.check_apart(actor, plan.source, targets[-1:], both_ways=plan.wish.both_ways)
    places.check_apart_from_repositories(actor, targets[-1:])


def _told(check: Callable[[], object]) -> LakeMirrorError | None:
    try:
        check()
    except LakeMirrorError as error:
        return error
    return None


def _second_round(
    plan: _Plan, answers: Answers, apart: dict[str, LakeMirrorError | None], writing: bool
) -> dict[str, Callable[[], Any]]:
    calls: dict[str, Callable[[], Any]] = {}
    listing = answers.get(f"{decide.SOURCE}-listing")
    first = next((item for item in listing.items if item.size), None) if isinstance(listing, Listing) else None
    if first is not None:
        reader = plan.reader(decide.SOURCE)
        calls["source-read"] = partial(reader.store.read, reader.uri(first.key), (0, 1))
        calls |= travelling.second_round(plan.terms, plan.versioned.get(decide.SOURCE, reader), first.key)
    if writing:
        for side, target in plan.targets.items():
            if apart[side] is None:
                store = plan.reader(side).store
                calls[f"{side}-probe"] = partial(probe, store, target.place.uri, seconds=PROBE_SECONDS)
        free = {side: plan.reader(side) for side in plan.targets if apart[side] is None}
        calls |= travelling.probes(plan.terms, free, answers, versions=plan.wish.all_versions)
        calls |= versions.second_round(
            {side: plan.places[side] for side in plan.versioned if apart.get(side, 1) is None},
            purges=plan.wish.purges,
        )
    return calls


# --- what the answers mean --------------------------------------------------------------------------------------------


def _checks(plan: _Plan, answers: Answers, apart: dict[str, LakeMirrorError | None]) -> Iterator[Check]:
    wish = plan.wish
    if plan.rule is None:
        yield decide.check_name(wish.name, _told(partial(_check_name, wish.name)))
    yield from _of_place(plan, decide.SOURCE, wish.uri, answers)
    if plan.source:
        read = answers.get("source-read")
        listing = answers[f"{decide.SOURCE}-listing"]
        error = read if isinstance(read, LakeMirrorError) else None
        yield decide.check_readable(wish.uri, listing, error)
        yield from travelling.of_source(plan.terms, wish.uri, answers, versions=wish.all_versions)
        yield from versions.of_place(decide.SOURCE, plan.versioned, answers)
    for number, target in enumerate(wish.targets, 1):
        side = decide.target_side(number)
        yield from _of_place(plan, side, target.uri, answers)
        if side in plan.places:
            yield decide.check_apart(side, target.uri, apart[side])
            yield from _of_rights(side, target.uri, answers.get(f"{side}-probe"), apart[side])
            untried = NOT_TRIED if apart[side] is None else _UNPLACED
            if plan.source:
                both = {"versions": wish.all_versions}
                yield from travelling.of_target(plan.terms, side, target.uri, answers, untried, **both)
            yield from versions.of_place(side, plan.versioned, answers)
            if wish.all_versions:
                yield from versions.of_target(side, target.uri, answers, untried, overwrite=wish.overwrite)
                if wish.purges:
                    yield versions.of_purges(side, target.uri, answers, untried)
            else:
                yield decide.check_content(side, target.uri, answers[f"{side}-listing"], overwrite=wish.overwrite)


def _check_name(name: str) -> None:
    wishes.check_name(name)
    check_unused(name)


def _of_place(plan: _Plan, side: str, uri: str, answers: Answers) -> Iterator[Check]:
    """Address, bucket, listing and clock of a place."""
    yield decide.check_address(side, uri, plan.wrong.get(side))
    if side not in plan.places:
        return
    answer = answers[f"{side}-listing"]
    yield decide.check_bucket(side, _store(plan, side), answer)
    yield of_stores.check_list(side, uri, answer)
    region = plan.places[side].region
    yield decide.check_clock(side, region, answers[f"{side}-clock"], newest=plan.wish.both_ways)


def _of_rights(side: str, uri: str, probed: Any, apart: LakeMirrorError | None) -> Iterator[Check]:
    untried = NOT_TRIED if apart is None else _UNPLACED
    for action in TRIED:
        if isinstance(probed, Probed):
            yield of_stores.check_right(side, action, uri, probed.answers[action], probed.left)
        else:
            yield of_stores.check_right(side, action, uri, probed or untried)


def _store(plan: _Plan, side: str) -> of_stores.Store:
    target = plan.places[side]
    key = config.current().store(target.region).credentials.access_key_id
    where = plan.reader(side).store.where
    return of_stores.Store(split_uri(target.place.uri)[0], where, False, target.region, key)
