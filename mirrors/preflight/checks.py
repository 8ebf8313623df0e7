"""Asks everything that would keep a planned mirror from working, and stores nothing.

Two rounds of calls side by side: the second asks about what the first has found. What they mean is decided in
`core.installations.preflight` and `core.installations.preflight_stores`, and by the rules of creation in
`mirrors.services.placement`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from core.access.policies import namespace_arn, repository_arn
from core.errors import LakeMirrorError, NotFound
from core.installations import preflight as decide
from core.installations import preflight_bringing as bringing
from core.installations import preflight_deletions as deletions
from core.installations import preflight_hooks as hooks
from core.installations import preflight_stores as stores
from core.installations.preflight import Check, CheckOutcome, NotAsked
from core.installations.preflight_existing import Sample, check_existing
from core.installations.replication_rights import UNTRIED, UNUSED
from core.installations.unreplicated_objects import Namespaces
from core.replication.facts import StoreKind
from core.text.phrases import count
from core.types import RepositoryInfo
from db import clock
from deployment.wiring import region_settings
from installations import probes
from installations.check_groups import CheckGroups, grouped
from installations.permission_probes import is_of_branches, tries_of
from installations.probes import Answers, ask, is_name
from jobs import deployments
from mirrors.models import Repository
from mirrors.preflight.questions import Plan, first_round, second_round
from mirrors.services import mirrors, placement
from rbac import services as rbac

T = TypeVar("T")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Preflight:
    """What was found, at the moment `as_of`."""

    checks: list[Check]
    as_of: datetime
    deciding: Collection[str] = decide.DECIDING
    missing: Sequence[str] = ()
    """Fields that nobody has filled in yet, so that what needs them was not checked."""

    @property
    def ok(self) -> bool:
        """Whether nothing failed, and what decides is known."""
        return not self.missing and decide.passed(self.checks, self.deciding)

    @property
    def failed(self) -> list[str]:
        """The ids of the checks that failed: with these a mirror would not work."""
        return [check.id for check in self.checks if check.state is CheckOutcome.FAILED]

    @property
    def groups(self) -> CheckGroups:
        """As a page shows them."""
        return grouped(self.checks)

    @property
    def verdict(self) -> str:
        """One sentence."""
        urgent, good = self.groups.urgent, self.groups.good
        failed = sum(check.state is CheckOutcome.FAILED for check in urgent)
        if failed:
            return f"{failed} of {count(len(self.checks), 'check')} failed: see below for what to do."
        if self.missing:
            return f"{count(len(good), 'check')} passed so far. Fill in {' and '.join(self.missing)} for the rest."
        if not self.ok:
            return "Some required checks could not be made: see below."
        others = f", {count(len(urgent), 'warning')}" if urgent else ""
        return f"Ready: {count(len(good), 'check')} passed{others}."


def preflight(*, actor: Any, plan: Plan, writing: bool = False) -> Preflight:
    """Every check of a plan; `writing`: with what has to be tried at the store. Raises Denied unless the actor might
    make this mirror; nothing else is raised."""
    rbac.require(actor, *mirrors.rights_to_create(plan.source_repository, plan.name, plan.namespace))
    answers: Answers = ask(first_round(plan))
    answers |= ask(second_round(plan, answers, writing=writing))
    return Preflight(list(_checks(plan, answers)), clock.now())


# --- what it means ----------------------------------------------------------------------------------------------------


def _checks(plan: Plan, answers: Answers) -> Iterator[Check]:
    def answer(key: str) -> Any:
        return answers.get(key, NotAsked("an earlier check failed"))

    yield from _of_installation("source", plan.source_region, answer("source"))
    yield _judged("source-repository", partial(_source, plan, answer))
    yield decide.check_branches(answer("repository"), plan.include, plan.exclude, answer("branches"))
    yield hooks.check_webhook(plan.source_repository, answer("webhook"))
    if plan.holds:
        yield hooks.check_hold_file(plan.source_repository, answer("hold-file"))
    yield from _of_installation("destination", plan.region, answer("destination"))
    yield _judged("destination-worker", partial(_worker, plan.region))
    yield _judged("name", partial(_name, plan, answer))
    yield _judged("namespace", partial(_namespace, plan, answer))
    yield from _of_place(plan, answer)
    yield from _of_clocks(plan, answer)
    yield from _of_rights(plan, answer)


def _of_installation(side: str, region: str, server: Any) -> Iterator[Check]:
    yield decide.check_reachable(side, region, server)
    yield decide.check_credentials(side, region, server)
    yield decide.check_version(side, region, server)


def _judged(check_id: str, rules: Callable[[], Check]) -> Check:
    """What rules that raise come to; one that breaks says nothing."""
    try:
        return rules()
    except LakeMirrorError as error:
        return decide.failing(check_id, error)
    except Exception as error:
        logger.exception("the check %s broke", check_id)
        return Check(
            check_id, CheckOutcome.UNKNOWN, f"This check failed unexpectedly ({type(error).__name__}); see the log"
        )


def _source(plan: Plan, answer: Callable[[str], Any]) -> Check:
    repository = answer("repository") if is_name(plan.source_repository) else NotFound("this is not a repository name")
    known = Repository.objects.filter(region=plan.source_region, name=plan.source_repository).first()
    if known and isinstance(repository, RepositoryInfo):
        placement.check_same_source(known, repository)
    if isinstance(repository, RepositoryInfo):
        placement.check_source_apart(repository.storage_namespace, plan.source_region)
    return decide.check_repository(plan.source_repository, plan.source_region, repository, answer("head"))


def _worker(region: str) -> Check:
    region_settings.require_lakefs(region)
    deployment = deployments.working_for(region)
    if deployment is None:
        return decide.check_worker(region, "", "")
    return decide.check_worker(region, deployment.region, deployments.silent_for(deployment, clock.now()))


def _name(plan: Plan, answer: Callable[[str], Any]) -> Check:
    placement.check_name(plan.name)
    region_settings.require_lakefs(plan.region)
    placement.check_not_the_source(plan.name, plan.region, plan.source_repository, plan.source_region)
    placement.check_unused(plan.name)
    existing = _had(answer("existing"))
    placement.check_free(existing, plan.region, plan.adopt)
    if existing is None:
        return Check("name", CheckOutcome.OK, f"'{plan.name}' is free in {plan.region}")
    _had(answer("adoptable"))
    return Check("name", CheckOutcome.OK, f"'{plan.name}' in {plan.region} can be adopted")


def _namespace(plan: Plan, answer: Callable[[str], Any]) -> Check:
    probes.check_namespace(plan.namespace)
    placement.check_apart_from_mirrors(plan.namespace, plan.region)
    placement.check_apart_from_source(plan.namespace, plan.region, _had(answer("repository")), plan.source_region)
    placement.check_still_free(plan.namespace, plan.region, plan.name)
    placement.check_apart_from_repositories(plan.namespace, _had(answer("others")), plan.region, plan.name)
    message = f"{plan.namespace} overlaps no other repository, mirror or export"
    return Check("namespace", CheckOutcome.OK, message)


def _had(answer: T | LakeMirrorError) -> T:
    """The answer, if one was had; a source that isn't there is said elsewhere, and is no fault of the place."""
    if isinstance(answer, NotFound):
        raise NotAsked(answer.message)
    if isinstance(answer, LakeMirrorError):
        raise answer
    return answer


def _of_place(plan: Plan, answer: Callable[[str], Any]) -> Iterator[Check]:
    source = answer("repository")
    place = source.storage_namespace if isinstance(source, RepositoryInfo) else ""
    yield stores.check_bucket(plan.namespace, answer("destination-content"))
    yield stores.check_content(plan.namespace, answer("destination-content"), answer("source-content"))
    yield from (_of_bringing if plan.managed else _of_replication)(plan, place, answer)
    yield deletions.check_expiration(plan.namespace, answer("lifecycle"))
    yield _judged("source-gc-rules", partial(_source_rules, plan, answer))
    yield _judged("destination-gc-rules", partial(_own_rules, plan, answer))
    yield stores.check_proxy(plan.region, answer("destination-proxy"))
    yield stores.check_metadata_prefix("source", plan.source_region, answer("source-metadata"))
    yield stores.check_metadata_prefix("destination", plan.region, answer("destination-metadata"))


def _of_replication(plan: Plan, place: str, answer: Callable[[str], Any]) -> Iterator[Check]:
    """Will the stores bring the objects, and those that were there before?"""
    yield stores.check_versioning("source", place, answer("source-versioning"))
    yield stores.check_versioning("destination", plan.namespace, answer("destination-versioning"))
    yield stores.check_replication(place, plan.namespace, answer("rules"))
    counted, rules = answer("unreplicated"), answer("rules")
    lacking, sample = (counted, Sample(StoreKind.OTHER)) if isinstance(counted, LakeMirrorError) else counted
    known = () if isinstance(rules, LakeMirrorError) else rules
    yield check_existing(Namespaces(place.rstrip("/"), plan.namespace), lacking, sample, known)
    yield deletions.check_delete_markers(place, plan.namespace, answer("rules"))
    yield deletions.check_lifecycle(plan.namespace, answer("lifecycle"))


def _of_bringing(plan: Plan, place: str, answer: Callable[[str], Any]) -> Iterator[Check]:
    """May we bring them ourselves?"""
    yield bringing.check_double_work(place, plan.namespace, answer("rules"))
    probed = answer("destination-probe")
    bucket_known = not isinstance(answer("destination-content"), LakeMirrorError)
    untried = bringing.NOT_TRIED if bucket_known and isinstance(probed, NotAsked) else probed
    yield bringing.check_writable(plan.namespace, untried)


def _source_rules(plan: Plan, answer: Callable[[str], Any]) -> Check:
    name = plan.source_repository
    return deletions.check_source_rules(name, repository_arn(name), answer("source-rules"))


def _own_rules(plan: Plan, answer: Callable[[str], Any]) -> Check:
    adopted = plan.adopt and answer("existing") is not None
    rules = (answer("source-rules"), answer("own-rules")) if adopted else None
    of_key = repository_arn(plan.name)
    return deletions.check_mirror_rules(plan.name, plan.source_repository, plan.namespace, of_key, rules)


def _of_clocks(plan: Plan, answer: Callable[[str], Any]) -> Iterator[Check]:
    yield stores.check_clock("database-clock", "the database", -clock.machine_ahead())
    for side, region in (("source", plan.source_region), ("destination", plan.region)):
        server = answer(side)
        ahead = server if isinstance(server, LakeMirrorError) else server.clock_ahead
        yield stores.check_clock(f"{side}-lakefs-clock", f"the lakeFS of {region}", ahead)
        store = f"the store of {region}"
        yield stores.check_clock(f"{side}-store-clock", store, answer(f"{side}-store-clock"), signed=True)


def _of_rights(plan: Plan, answer: Callable[[str], Any]) -> Iterator[Check]:
    for side, name in (("source", plan.source_repository), ("destination", plan.name)):
        for action in tries_of(side, tags=plan.tags, follows_gc=plan.follows_gc):
            yield decide.check_right(side, action, _arn(action, name, plan), answer(f"{side}-right:{action}"))
        for action, why in UNTRIED[side].items():
            yield decide.untried(side, action, _arn(action, name, plan), why, needed=why != UNUSED)


def _arn(action: str, name: str, plan: Plan) -> str:
    if action == "fs:ListRepositories":
        return "*"
    if action == "fs:AttachStorageNamespace":
        return namespace_arn(plan.namespace)
    return repository_arn(f"{name}/*" if is_of_branches(action) else name)
