"""The business verbs of exports: typed, keyword-only, knowing nothing of HTTP or the queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.db import transaction

from adapters.regex import Patterns
from audit.verbs import Verb
from core import labels
from core.access.policies import branch_arn
from core.errors import Conflict, Invalid, NotFound
from core.exporting import state_machine
from core.exporting.destinations import check_beside, check_place
from core.exporting.manifests import Mode as Manifest
from core.exporting.names import check_name, joined
from core.exporting.state_machine import State
from core.pauses import ENDED, columns_of, recorded
from core.types import RepositoryInfo
from db import clock
from exports.engine import drift_repairs, runs, verifications
from exports.engine.abandoned_destinations import take
from exports.models import Export, ExportRun, ExportVerification
from exports.services import destinations
from installations.services import hold_lakefs
from jobs import duties
from mirrors.services.placement import hold_places
from rbac import services as rbac

KIND = "export"
MOST_PATTERNS, LONGEST_PATTERN = 50, 1000
PATTERNS = "lastKeysInPrefixRegexp"
MOST_PER_SECOND = {"objects_per_second": 10**9, "bytes_per_second": 10**15}
SETTINGS = (
    "path",
    "status_path",
    "patterns",
    "continuous",
    "manifest",
    "actions",
    "objects_per_second",
    "bytes_per_second",
)
KEPT = {"continuous": False, "manifest": Manifest.DAILY.value, "actions": False}
"""What stays as it was unless somebody says otherwise, and what a new export has then."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked of a configuration: every field of it, as PUT replaces them all."""

    path: str
    status_path: str = ""
    patterns: Sequence[str] = ()
    continuous: bool | None = None
    """None: as it was, and for a new export once."""
    manifest: str | None = None
    """None: as it was, and for a new export at most once a day."""
    actions: bool | None = None
    """Also what is below `_lakefs_actions/`. None: as it was, and for a new export not."""
    objects_per_second: int | None = None
    bytes_per_second: int | None = None


# --- configuration ----------------------------------------------------------------------------------------------------


def export_set(
    *,
    actor: Any,
    region: str,
    repository: str,
    branch: str,
    name: str = "",
    wish: Wish,
    failed_checks: Sequence[str] = (),
) -> tuple[Export, bool]:
    """Configure the export of a branch, and have its state of now exported at once; also whether it is a new one. A
    branch may have several, to places that are apart, each with a `name`; "" is the one without. `failed_checks`: ids
    of checks that failed, which somebody ignores; they stand in the audit record.

    Raises what `check_setting` does; then nothing is stored.
    """
    right = ("fs:ExportConfig", branch_arn(repository, branch))
    rbac.require(actor, right)
    setting = check_setting(actor=actor, region=region, repository=repository, branch=branch, name=name, wish=wish)
    settings, source = setting.settings, setting.source
    itself = Export(region=region, repository=source.id, branch=branch, name=name)
    with transaction.atomic():
        hold_places()
        hold_lakefs(region)
        destinations.check_apart(actor, settings["path"], settings["status_path"], source, itself)
        export, before = _store(itself, source, settings, setting.head)
        duties.ensure(KIND, subject_of(export), region)
        duties.wake(KIND, subject_of(export))
        after = {name: getattr(export, name) for name in SETTINGS}
        after |= {"failed_checks": list(failed_checks)} if failed_checks else {}
        _audit(actor, right, Verb.CHANGE if before else Verb.CREATE, export, before=before, after=after)
    return export, before is None


@dataclass(frozen=True, slots=True)
class Setting:
    """What an export is set to, once that was found in order: columns, its repository, and the branch's head."""

    settings: dict[str, Any]
    source: RepositoryInfo
    head: str


def check_setting(*, actor: Any, region: str, repository: str, branch: str, name: str = "", wish: Wish) -> Setting:
    """What `export_set` would store; nothing is.

    Raises Denied, Invalid (naming the field), NotFound (no such repository or branch), Conflict (it is just being
    deleted) and Unreachable (the source, or an installation whose repositories may lie at these places).
    """
    rbac.require(actor, ("fs:ExportConfig", branch_arn(repository, branch)))
    if name:
        check_name(name)
    destinations.check_region(region)
    settings = checked(wish)
    path, status_path = settings["path"], settings["status_path"]
    check_beside(status_path, path, repository, branch)
    source = destinations.source_of(region, repository)
    head = destinations.check_branch(region, repository, branch)
    itself = Export(region=region, repository=source.id, branch=branch, name=name)
    destinations.check_apart(actor, path, status_path, source, itself)
    near = destinations.repositories_near(region, path, status_path)
    destinations.check_apart_from_repositories(actor, path, status_path, region, near)
    destinations.check_reached(path, status_path, region)
    return Setting(settings, source, head)


def checked(wish: Wish) -> dict[str, Any]:
    """A wish as columns. Raises Invalid naming the field."""
    path = check_place(wish.path, "exportPath")
    status_path = check_place(wish.status_path, "exportStatusPath") if wish.status_path else ""
    check_patterns(wish.patterns)
    check_manifest(wish.manifest)
    for name in MOST_PER_SECOND:
        check_limit(name, getattr(wish, name))
    return asdict(wish) | {"path": path, "status_path": status_path, "patterns": list(wish.patterns)}


def check_patterns(patterns: Sequence[str]) -> None:
    """Raises Invalid, saying which expression is none, where, and what to write instead."""
    if len(patterns) > MOST_PATTERNS:
        raise Invalid(f"at most {MOST_PATTERNS} expressions", field=PATTERNS, hint="Combine some with |")
    for number, pattern in enumerate(patterns, 1):
        if len(pattern) > LONGEST_PATTERN:
            text = f"pattern {number} has {len(pattern):,} characters, and {LONGEST_PATTERN:,} are the most"
            raise Invalid(text, field=PATTERNS, hint="Split it")
    Patterns(patterns, field=PATTERNS)


def kept(wished: Mapping[str, Any], export: Export | None) -> dict[str, Any]:
    """The columns of KEPT, by what is wished (None: nothing) of an export that there is or isn't."""
    given = {name: wished[name] for name in KEPT}
    return {
        name: value if value is not None else getattr(export, name) if export else KEPT[name]
        for name, value in given.items()
    }


def check_manifest(mode: str | None) -> None:
    """Raises Invalid for what is no mode."""
    if mode is not None and mode not in list(Manifest):
        raise Invalid(f"'{mode[:40]}' is not one of {', '.join(Manifest)}", field="manifest", hint="Use one of these")


def _store(itself: Export, source: Any, settings: dict[str, Any], head: str) -> tuple[Export, dict[str, Any] | None]:
    """The row with its new settings, and the settings before, None if it is new. `itself` is no row yet: it says which
    export is meant."""
    now = clock.now()
    asked = {"wanted": True, "wanted_ref": head, "changed_at": now}
    export = Export.objects.select_for_update().named(**itself.identity).first()
    settings = settings | kept(settings, export)
    if export is None:
        pins = {"creation_date": source.creation_date, "storage_namespace": source.storage_namespace}
        # A worker of the version before, which knows no such choice, may carry its first run.
        pins["actions_at_success"] = True
        made = Export.objects.create(**itself.identity, created_at=now, **asked, **pins, **settings)
        take(made)
        return made, None
    if export.deleting:
        raise Conflict("the export is being deleted", hint="Try again in a minute")
    before = {name: getattr(export, name) for name in SETTINGS}
    for name, value in {**settings, **asked}.items():
        setattr(export, name, value)
    export.save(update_fields=[*settings, *asked])
    take(export)
    return export, before


def export_delete(*, actor: Any, export: Export, reason: str = "") -> None:
    """Export no more. What was exported stays; the row goes when no task of it can write any more."""
    right = ("fs:ExportConfig", export.arn)
    rbac.require(actor, right)
    with transaction.atomic():
        now = Export.objects.held(export.pk)
        Export.objects.filter(pk=export.pk).update(deleting=True)
        duties.wake(KIND, subject_of(export))
        before = {name: getattr(now, name) for name in SETTINGS}
        _audit(actor, right, Verb.DELETE, export, before=before, reason=reason)


def export_pause(*, actor: Any, export: Export, paused: bool, stated: Mapping[str, Any] | None = None) -> None:
    """Stop after the slice that is being copied, or go on; nothing is lost. `stated` are the columns of core.pauses
    that somebody says of a pause: its reason, its end. Raises Denied, NotFound and Invalid."""
    right = ("fs:PauseExport", export.arn)
    rbac.require(actor, right)
    with transaction.atomic():
        now = Export.objects.held(export.pk)
        columns = columns_of(now.pause, stated or {}, by=_name(actor), now=clock.now()) if paused else dict(ENDED)
        Export.objects.filter(pk=export.pk).update(**columns)
        duties.wake(KIND, subject_of(export))
        verb = Verb.RESUME if not paused else Verb.CHANGE if now.paused and stated else Verb.PAUSE
        told = [name for name, value in columns.items() if name == "paused" or getattr(now, name) != value]
        before = recorded({name: getattr(now, name) for name in told})
        after, reason = recorded({name: columns[name] for name in told}), columns.get("pause_reason", "")
        _audit(actor, right, verb, export, before=before, after=after, reason=reason)


def export_limits(*, actor: Any, export: Export, changes: Mapping[str, int | None]) -> None:
    """Change how fast it may go: `objects_per_second`, `bytes_per_second`, None for no limit. A run that goes on takes
    it up with its next slice; nothing is exported for it. Raises Denied, NotFound, and Invalid naming the field."""
    right = ("fs:ExportConfig", export.arn)
    rbac.require(actor, right)
    for name, limit in changes.items():
        check_limit(name, limit)
    with transaction.atomic():
        now = Export.objects.held(export.pk)
        Export.objects.filter(pk=export.pk).update(**changes, changed_at=clock.now())
        before = {name: getattr(now, name) for name in changes}
        _audit(actor, right, Verb.CHANGE, export, before=before, after=dict(changes))


def export_label(*, actor: Any, export: Export, wanted: Mapping[str, str]) -> None:
    """Replace its labels; nothing is exported for it. Raises Denied, NotFound and Invalid."""
    right = ("fs:ExportConfig", export.arn)
    rbac.require(actor, right)
    labels.check(wanted)
    with transaction.atomic():
        now = Export.objects.held(export.pk)
        if now.labels == wanted:
            return
        Export.objects.filter(pk=export.pk).update(labels=dict(wanted), changed_at=clock.now())
        _audit(actor, right, Verb.CHANGE, export, before={"labels": now.labels}, after={"labels": dict(wanted)})


def check_limit(name: str, limit: int | None) -> None:
    """Raises Invalid for a limit that would let nothing through, or that no column holds."""
    if limit is not None and not 1 <= limit <= MOST_PER_SECOND[name]:
        raise Invalid(f"must be from 1 to {MOST_PER_SECOND[name]:,}, or empty for no limit", field=name)


# --- running ----------------------------------------------------------------------------------------------------------


def export_run(*, actor: Any, export: Export) -> ExportRun:
    """Start to export the branch's head of now. Raises Denied, Conflict, NotFound (branch or export are gone) and
    Unreachable."""
    right = ("fs:RunExport", export.arn)
    rbac.require(actor, right)
    state_machine.check_start(export.standing(), "")
    head = runs.head_of(export)
    with transaction.atomic():
        run = runs.start(export, head, asked_by=_name(actor))
        _audit(actor, right, Verb.RUN, export, after={"export": run.pk, "ref": head})
    return run


def export_repair(*, actor: Any, export: Export) -> None:
    """Somebody has repaired what kept the export from succeeding: it goes on. Raises Denied, NotFound and Conflict."""
    right = ("fs:RunExport", export.arn)
    rbac.require(actor, right)
    state_machine.check_repair(export.standing())
    with transaction.atomic():
        now = Export.objects.held(export.pk)
        if not Export.objects.move(export.pk, states=[State.FAILED], state=State.REPAIRED):
            state_machine.check_repair(now.standing())
        duties.wake(KIND, subject_of(export))
        _audit(actor, right, Verb.REPAIR, export, after={"repair": export.current_ref})


def export_verify(*, actor: Any, export: Export) -> ExportVerification:
    """Compare the destination with the commit of the last success; one that goes on already is given. Raises Denied,
    NotFound and Conflict."""
    right = ("fs:RunExport", export.arn)
    rbac.require(actor, right)
    with transaction.atomic():
        verification = verifications.begin(export, asked_by=_name(actor))
        _audit(actor, right, Verb.VERIFY, export, after={"verify": verification.ref})
    return verification


def export_repair_drift(*, actor: Any, export: Export, remove: bool) -> ExportRun:
    """Bring again what the last verification found missing or different; `remove` also takes away what it found too
    much, where that was brought with an earlier commit. Raises Denied, NotFound and Conflict."""
    right = ("fs:RunExport", export.arn)
    rbac.require(actor, right)
    with transaction.atomic():
        run = drift_repairs.start(export, remove=remove, asked_by=_name(actor))
        after = {"verification": run.repairs_id, "ref": run.ref, "remove_foreign": remove}
        _audit(actor, right, Verb.REPAIR, export, after=after)
    return run


def _audit(actor: Any, right: rbac.Right, verb: Verb, export: Export, **more: Any) -> None:
    rbac.audit(actor=actor, right=right, verb=verb, subject=export.audit_name, **more)


def find_export(region: str, repository: str, branch: str, name: str = "") -> Export:
    """The export of a branch that has this name. NotFound says what is missing: a configuration, not the branch."""
    export = Export.objects.named(region, repository, branch, name).filter(deleting=False).first()
    if export is None:
        others = Export.objects.filter(region=region, repository=repository, branch=branch, deleting=False)
        called = f"no export '{name}'" if name else "no export"
        raise NotFound(
            f"{called} is configured for branch '{branch[:80]}' of '{repository[:80]}' in {region}",
            hint=_OTHERS if others.exists() else "Create one by PUT or lakemirror export set",
        )
    return export


_OTHERS = f"The branch has exports with other names: list them, and use {joined('BRANCH', 'NAME')}"


def subject_of(export: Export) -> int:
    """The subject of an export's duty: below zero, so that nobody takes it for a mirror's."""
    return -export.pk


def _name(actor: Any) -> str:
    return actor if isinstance(actor, str) else str(actor.username)
