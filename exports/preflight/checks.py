"""Asks everything that would keep an export from working, and stores nothing.

What reads is asked while one types. What writes (a probe below the paths, removed at once) only where somebody asked
for it, and never at a place that is somebody else's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from adapters.s3.fast_store import ListedPage
from adapters.s3.store import split_uri
from adapters.s3.write_probe import PARTS, PUT, TRIED, Probed, probe
from core.access.policies import branch_arn
from core.errors import Invalid, LakeMirrorError
from core.exporting import preflight as decide
from core.exporting.destinations import check_beside, check_place, imported_from
from core.exporting.markers import is_marker
from core.exporting.names import check_name
from core.installations import preflight_stores as stores
from core.installations.preflight import Check, CheckOutcome, NotAsked, failing
from db import clock
from deployment import config
from deployment.wiring import clients, region_settings
from exports.models import Export
from exports.preflight.branch_sample import Branch, FirstFiles, branch_of, first_files
from exports.preflight.pattern_trial import named, try_patterns
from exports.services import destinations
from exports.services.exports import Wish, kept
from installations.probes import Answers, Calls, ask
from mirrors.preflight.checks import Preflight
from rbac import services as rbac

PROBE_SECONDS = 6.0
SIDES = {"path": "exportPath", "status": "exportStatusPath"}
NOT_TRIED = NotAsked("nothing is written while you type", hint="Leave the field, or click Check")
_UNPLACED = NotAsked("the path can't be written to")
_UNREAD = NotAsked("fs:ReadBranch on the branch is needed")


@dataclass(frozen=True, slots=True)
class Plan:
    """An export that somebody thinks of. "" is what isn't filled in yet. `export`: the one that is configured."""

    region: str
    repository: str
    branch: str
    wish: Wish
    export: Export | None = None
    name: str = ""

    @property
    def itself(self) -> Export:
        """The export, be it stored or not."""
        return self.export or Export(region=self.region, repository=self.repository, branch=self.branch, name=self.name)

    @property
    def actions(self) -> bool:
        """With what is below `_lakefs_actions/`."""
        return bool(kept(asdict(self.wish), self.export)["actions"])


def check_plan(*, actor: Any, plan: Plan, writing: bool) -> Preflight:
    """Every check of a plan; `writing`: with probes. Raises Denied unless the actor might configure this export."""
    arn = branch_arn(plan.repository, plan.branch)
    rbac.require(actor, ("fs:ExportConfig", arn))
    try:
        destinations.check_region(plan.region)
    except LakeMirrorError as error:
        return _preflight([failing("branch", error)])
    places, wrong = _places(plan.wish)
    answers: Answers = ask(_first_round(plan, places))
    wrong |= _not_apart(actor, plan, places, answers)
    answers["files"] = answers["branch"] if rbac.allowed(actor, "fs:ReadBranch", arn) else _UNREAD
    answers |= ask(_second_round(plan, places, answers["files"], wrong, writing))
    wrong = _imported_from(plan.region, places.get("path", ""), answers.get("files")) | wrong
    return _preflight(list(_checks(plan, places, wrong, answers)))


def require_reading(actor: Any, plan: Plan) -> None:
    """Raises Denied unless the actor may see what the branch holds: names of its files, how many there are."""
    rbac.require(actor, ("fs:ReadBranch", branch_arn(plan.repository, plan.branch)))


def _preflight(checks: list[Check]) -> Preflight:
    return Preflight(checks, clock.now(), decide.DECIDING)


def _places(wish: Wish) -> tuple[dict[str, str], dict[str, LakeMirrorError]]:
    """The places that have the right form, by side, and what is wrong with others."""
    typed = {"path": wish.path, "status": wish.status_path}
    places: dict[str, str] = {}
    wrong: dict[str, LakeMirrorError] = {}
    for side, uri in typed.items():
        if not uri and side == "status":
            continue
        try:
            places[side] = check_place(uri, SIDES[side])
        except Invalid as error:
            wrong[side] = error
    return places, wrong


def _not_apart(actor: Any, plan: Plan, places: dict[str, str], answers: Answers) -> dict[str, LakeMirrorError]:
    """Places that are somebody else's, or in each other, by the name of the check; or of which nobody could tell."""
    wrong: dict[str, LakeMirrorError] = {}
    branch, repositories = answers["branch"], answers["repositories"]
    if not isinstance(branch, Branch):
        return {f"{side}-apart": NotAsked("the repository is not known") for side in places}
    for side, place in places.items():
        given = (place, "") if side == "path" else ("", place)
        try:
            destinations.check_apart(actor, *given, branch.repository, plan.itself)
            if side == "status" and "path" in places:
                check_beside(place, places["path"], plan.repository, plan.branch)
            if isinstance(repositories, LakeMirrorError):
                raise repositories
            destinations.check_apart_from_repositories(actor, *given, plan.region, repositories)
        except LakeMirrorError as error:
            wrong[f"{side}-apart"] = error
    return wrong


def _imported_from(region: str, path: str, files: Any) -> dict[str, LakeMirrorError]:
    """A place in which objects of the branch lie, as far as its first files tell. They are in the region's store."""
    imported = files.imported if path and isinstance(files, FirstFiles) else ()
    here = region_settings.export_place(region, path).in_store_of(region_settings.place(region, path))
    inside = [one for one in imported if here and one[0].startswith(f"{path}/")]
    return {"path-apart": imported_from(path, *inside[0])} if inside else {}


# --- questions --------------------------------------------------------------------------------------------------------


def _first_round(plan: Plan, places: dict[str, str]) -> Calls:
    calls: Calls = {
        "branch": partial(branch_of, plan.region, plan.repository, plan.branch),
        "repositories": partial(destinations.repositories_near, plan.region, *places.values()),
    }
    for side, place in places.items():
        store = clients.quick_export_store(plan.region, place)
        calls[f"{side}-page"] = partial(store.page, f"{place}/")
        calls[f"{side}-clock"] = partial(store.clock_ahead, place)
    return calls


def _second_round(
    plan: Plan, places: dict[str, str], branch: Any, wrong: dict[str, LakeMirrorError], writing: bool
) -> Calls:
    calls: Calls = {"files": partial(first_files, branch, actions=plan.actions)} if isinstance(branch, Branch) else {}
    for side, place in places.items():
        if writing and f"{side}-apart" not in wrong:
            store = clients.quick_export_store(plan.region, place)
            calls[f"{side}-probe"] = partial(probe, store, place, seconds=PROBE_SECONDS)
    return calls


# --- what the answers mean --------------------------------------------------------------------------------------------


def _checks(plan: Plan, places: dict[str, str], wrong: dict[str, LakeMirrorError], answers: Answers) -> Iterator[Check]:
    branch = answers["branch"]
    yield _of_branch(plan, branch)
    if plan.name:
        yield _of_name(plan)
    for side in SIDES:
        if side in wrong:
            yield failing(side, wrong[side])
        if side in places:
            yield from _of_place(plan, side, places[side], wrong, answers)
    files = answers["files"]
    yield _of_patterns(plan, files)
    yield decide.check_markers(*_marker_names(files))
    yield stores.check_clock("database-clock", "the database", -clock.machine_ahead())


def _of_branch(plan: Plan, branch: Any) -> Check:
    taken = Export.objects.named(**plan.itself.identity).exists()
    if plan.export is None and taken:
        told = f"'{plan.name}' of this branch exists already" if plan.name else "This branch is exported already"
        return Check("branch", CheckOutcome.FAILED, told, "Edit that export, or give this one a name of its own")
    return decide.check_branch(plan.branch, plan.repository, branch.commit.id if isinstance(branch, Branch) else branch)


def _of_name(plan: Plan) -> Check:
    try:
        check_name(plan.name)
    except Invalid as error:
        return failing("name", error)
    return Check("name", CheckOutcome.OK, f"The export is called {plan.itself.which}")


def _of_place(
    plan: Plan, side: str, place: str, wrong: dict[str, LakeMirrorError], answers: Answers
) -> Iterator[Check]:
    store, page = _store(plan.region, place), answers[f"{side}-page"]
    yield Check(side, CheckOutcome.OK, f"{place} is an address of S3")
    yield decide.check_apart(side, place, wrong.get(f"{side}-apart"))
    yield decide.check_store(side, store)
    yield decide.check_bucket(side, store, page)
    if side == "path":
        if route := region_settings.export_route(plan.region, place):
            yield decide.check_region(side, route)
        yield decide.check_list(side, place, page)
        own_place = plan.export is not None and place in (plan.export.path_at_success, plan.export.attempted_path)
        keys = page.keys if isinstance(page, ListedPage) else page
        yield decide.check_content(place, keys, isinstance(page, ListedPage) and page.more, ours=own_place)
    yield from _of_rights(side, place, answers.get(f"{side}-probe"), wrong)
    yield stores.check_clock(f"{side}-clock", f"the store of {store.bucket}", answers[f"{side}-clock"], signed=True)


def _of_rights(side: str, place: str, probed: Any, wrong: dict[str, LakeMirrorError]) -> Iterator[Check]:
    """Status files are only written."""
    untried = _UNPLACED if f"{side}-apart" in wrong else NOT_TRIED
    for action in TRIED if side == "path" else (PUT, PARTS):
        if isinstance(probed, Probed):
            yield decide.check_right(side, action, place, probed.answers[action], probed.left)
        else:
            yield decide.check_right(side, action, place, probed or untried)


def _store(region: str, place: str) -> decide.Store:
    bucket = split_uri(place)[0]
    name, store = config.current().export_store(region, bucket)
    where = clients.quick_export_store(region, place).where
    return decide.Store(bucket, where, name != region, region, store.credentials.access_key_id)


def _of_patterns(plan: Plan, files: Any) -> Check:
    patterns = plan.wish.patterns
    try:
        empty = FirstFiles(0, 0, (), (), True)
        trial = try_patterns(patterns, files if isinstance(files, FirstFiles) else empty)
    except LakeMirrorError as error:
        return decide.check_patterns((), 0, error)
    if not isinstance(files, FirstFiles):
        return decide.check_patterns((), len(patterns), files)
    return decide.check_patterns(
        [matched.pattern for matched in trial.each if matched.nothing], len(patterns), looked_at(files)
    )


def looked_at(files: FirstFiles) -> str:
    """What was looked through, in words."""
    if files.whole:
        return f"the {files.files:,} files of the branch"
    return (
        f"the first {len(files.keys):,} of {files.files:,} files and the first {len(files.directories):,} directories"
    )


def _marker_names(files: Any) -> tuple[list[str], str | LakeMirrorError]:
    if not isinstance(files, FirstFiles):
        return [], files
    seen = "the branch's files" if files.whole else f"the first {len(files.keys):,} of {files.files:,} files"
    return named(key for key in files.keys if is_marker(key)), seen
