"""Asks an installation everything that mirrors, exports and rules will need of it, and keeps what was found.

The questions and their meaning are those of a mirror's preflight. Rights are tried on a mirror or a source that is
there; else on a repository that can't be, which shows a policy for all repositories, and not one for named ones. Where
there is no lakeFS only the store is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any
from uuid import uuid4

from core.access.policies import repository_arn
from core.errors import Invalid, LakeMirrorError, NotFound, Throttled
from core.installations import preflight as decide
from core.installations import preflight_stores as stores
from core.installations.preflight import Check, CheckOutcome, NotAsked
from core.installations.replication_rights import UNTRIED, UNUSED
from core.installations.settings import Secrets, Wish
from core.ports import LakeFS
from core.types import Page, RepositoryInfo, ServerInfo
from db import clock
from deployment import config
from deployment.wiring import clients, region_settings
from installations import probes
from installations.models import InstallationTest
from installations.permission_probes import Target, Try, is_of_branches, target_at_destination, tries_of
from installations.probes import about_bucket, ask, may_ask, may_ask_store
from installations.refresh import with_candidate
from installations.services import CREATE, TEST, UPDATE, changed_candidate, checked_candidate, installation_arn
from rbac import services as rbac

FIRST = 100
NO_PLACE = "no repository there has a namespace to test with; give one"
LET_IN = ("lakefs-reachable", "lakefs-credentials")
STORE_SHOWN = "store-bucket"


@dataclass(frozen=True, slots=True)
class Tried:
    """On which repository rights are tried; `named`: it is one that a policy for named repositories would name."""

    side: str
    name: str
    named: bool

    @property
    def tries(self) -> Mapping[str, Try]:
        return tries_of(self.side, tags=True)

    @property
    def target(self) -> Target:
        return target_at_destination(self.name)


_targets: list[Callable[[str], tuple[str, str] | None]] = []


def register_target(target: Callable[[str], tuple[str, str] | None]) -> None:
    """Let an app say which repository of a region it works with: its side, destination or source, and its name."""
    _targets.append(target)


def installation_test(*, actor: Any, region: str, namespace: str = "") -> InstallationTest:
    """Test it now. `namespace`: an s3:// address to test its store with, by default one of its repositories'; needed
    where there is no lakeFS. Raises Denied, NotFound and Invalid, and nothing for what is wrong with the
    installation."""
    rbac.require(actor, (TEST, installation_arn(region)))
    if region not in region_settings.names():
        raise NotFound(f"there is no installation '{region[:80]}'")
    return _keep(region, *_find_out(region, namespace))


def candidate_test(*, actor: Any, wish: Wish, secrets: Secrets, namespace: str = "") -> list[Check]:
    """The same of one that nobody has saved yet; nothing is kept. Raises Denied, and Conflict and Invalid as saving
    does."""
    arn = installation_arn(wish.region)
    rbac.require(actor, (CREATE, arn), (TEST, arn))
    with config.trying(with_candidate(checked_candidate(wish, secrets), secrets)):
        return _find_out(wish.region, namespace)[1]


def change_test(*, actor: Any, region: str, wish: Wish, secrets: Secrets, namespace: str = "") -> list[Check]:
    """The same of a change that nobody has saved yet: secrets that are not given are those that are kept. Raises
    Denied, and NotFound, Conflict and Invalid as saving does."""
    arn = installation_arn(region)
    rbac.require(actor, (UPDATE, arn), (TEST, arn))
    row, held = changed_candidate(region, wish, secrets)
    with config.trying(with_candidate(row, held)):
        return _find_out(region, namespace)[1]


def _find_out(region: str, namespace: str) -> tuple[Any, list[Check]]:
    """What its lakeFS says of itself (None where there is none), and every check. Raises Invalid."""
    if namespace:
        probes.check_namespace(namespace.rstrip("/"), "namespace")
    if region not in region_settings.lakefs_names():
        return None, _of_store_alone(region, namespace)
    tried = _tried(region)
    known = ask({"server": lambda: clients.quick_lakefs(region).server(), "repositories": partial(_first, region)})
    place = namespace or _place(known["repositories"])
    return known["server"], list(_checks(region, place, tried, known, ask(_calls(region, place, tried))))


def _first(region: str) -> Page[RepositoryInfo]:
    return clients.quick_lakefs(region).list_repositories(amount=FIRST)


def _place(page: Page[RepositoryInfo] | LakeMirrorError) -> str:
    """Where the first repository lies that lies in S3."""
    if isinstance(page, LakeMirrorError):
        return ""
    places = (repository.storage_namespace for repository in page.results)
    return next((place for place in places if place.startswith("s3://")), "")


def _tried(region: str) -> Tried:
    for target in _targets:
        if place := target(region):
            return Tried(*place, named=True)
    return Tried("destination", f"lakemirror-probe-{uuid4().hex}", named=False)


def _calls(region: str, place: str, tried: Tried) -> dict[str, Any]:
    if not may_ask(region):
        return {}
    lakefs: LakeFS = clients.quick_lakefs(region)
    target = tried.target
    calls: dict[str, Any] = {action: partial(call, lakefs, target) for action, call in tried.tries.items()}
    return calls | (about_bucket("store", clients.quick_objects(region), place) if place else {})


# --- what it means ----------------------------------------------------------------------------------------------------


def _checks(
    region: str, place: str, tried: Tried, known: Mapping[str, Any], answers: Mapping[str, Any]
) -> Iterator[Check]:
    server = known["server"]
    for check in (decide.check_reachable, decide.check_credentials, decide.check_version):
        yield check("lakefs", region, server)
    for action in tried.tries:
        yield _right(tried, action, answers.get(action, NotAsked("an earlier check failed")))
    for action, why in UNTRIED[tried.side].items():
        yield decide.untried("lakefs", action, _arn(tried, action), why, needed=why != UNUSED)
    ahead = server if isinstance(server, LakeMirrorError) else server.clock_ahead
    yield stores.check_clock("database-clock", "the database", -clock.machine_ahead())
    yield stores.check_clock("lakefs-clock", f"the lakeFS of {region}", ahead)
    yield from _of_store(region, place, answers)


def _of_store(region: str, place: str, answers: Mapping[str, Any]) -> Iterator[Check]:
    missing = NotAsked("an earlier check failed" if place else NO_PLACE)
    yield replace(stores.check_bucket(place, answers.get("store-content", missing)), id="store-bucket")
    yield _versioning(stores.check_versioning("store", place, answers.get("store-versioning", missing)))
    ahead = answers.get("store-store-clock", missing)
    yield stores.check_clock("store-clock", f"the store of {region}", ahead, signed=True)


def _of_store_alone(region: str, place: str) -> list[Check]:
    """The checks of a store without a lakeFS, with a place that somebody gives."""
    if not place:
        raise Invalid(
            f"'{region}' has no lakeFS whose repositories would give an address to test its store with",
            field="namespace",
            hint="Enter one of a bucket there, like s3://bucket or s3://bucket/folder",
        )
    answers = ask(about_bucket("store", clients.quick_objects(region), place)) if may_ask_store(region) else {}
    clock_here = stores.check_clock("database-clock", "the database", -clock.machine_ahead())
    return [clock_here, *(_for_rules(check) for check in _of_store(region, place, answers))]


def _for_rules(check: Check) -> Check:
    """Rules need no versions, unless they copy all of them."""
    if check.id != "store-versioning" or check.state is not CheckOutcome.WARNING:
        return check
    message = f"{check.message.partition(', and')[0]}: only rules that copy all versions need it"
    return replace(check, state=CheckOutcome.OK, message=message, fix="")


def _versioning(check: Check) -> Check:
    """Only S3's own replication needs versions: exports, and other ways to copy, don't."""
    failed = check.state is CheckOutcome.FAILED
    return replace(check, state=CheckOutcome.WARNING) if failed else check


def _right(tried: Tried, action: str, answer: Any) -> Check:
    check = decide.check_right("lakefs", action, _arn(tried, action), answer)
    if check.state is not CheckOutcome.FAILED or tried.named:
        return check
    message = f"The key may not {action} on every repository; there is no mirror here yet to test a narrower right on"
    return replace(check, state=CheckOutcome.WARNING, message=message)


def _arn(tried: Tried, action: str) -> str:
    if action == "fs:ListRepositories":
        return "*"
    name = tried.name if tried.named else "*"
    return repository_arn(f"{name}/*" if is_of_branches(action) and tried.named else name)


# --- what is kept -----------------------------------------------------------------------------------------------------


def _keep(region: str, server: Any, checks: list[Check]) -> InstallationTest:
    states = {check.id: check.state for check in checks}
    reachable = states.get(LET_IN[0] if LET_IN[0] in states else STORE_SHOWN) is CheckOutcome.OK
    test, _ = InstallationTest.objects.update_or_create(
        region=region,
        defaults={
            "tested_at": clock.now(),
            "reachable": reachable or isinstance(server, Throttled),
            "lakefs_version": server.version[:100] if isinstance(server, ServerInfo) else "",
            "checks": [_stored(check) for check in checks],
        },
    )
    return test


def _stored(check: Check) -> dict[str, str]:
    """As it is kept and answered; none of these comes with a bucket's policy."""
    return {name: value for name, value in asdict(check).items() if name != "policy"}


def passed(test: InstallationTest) -> bool:
    """Nothing failed, and lakeFS lets us in; where there is none, the store shows us the place."""
    states = {check["id"]: check["state"] for check in test.checks}
    wanted = LET_IN if LET_IN[0] in states or STORE_SHOWN not in states else (STORE_SHOWN,)
    return all(states.get(check) == CheckOutcome.OK for check in wanted) and CheckOutcome.FAILED not in states.values()


def is_of_now(test: InstallationTest) -> bool:
    """Whether it asked what there is: an installation of the file may have got a lakeFS since, or lost it."""
    ids = {check["id"] for check in test.checks}
    if test.region in region_settings.lakefs_names():
        return LET_IN[0] in ids or STORE_SHOWN not in ids
    return not any(check.startswith("lakefs-") for check in ids)
