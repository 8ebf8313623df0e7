"""The life of a run: it starts, is carried on by whoever holds the export's duty, and ends one way or the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Coalesce, Now

from adapters.s3.store import split_uri
from core.errors import Conflict, NotFound
from core.exporting import state_machine
from core.exporting.explain import Gone
from core.exporting.state_machine import State
from core.installations.places import Place
from core.types import RepositoryInfo
from db import clock
from deployment import config
from deployment.wiring import clients, region_settings
from exports.engine import marked_places, status_files, verifications
from exports.engine.abandoned_destinations import leave_for, left_with
from exports.engine.source_commits import line_after
from exports.models import Export, ExportRun
from jobs import duties
from mirrors.models import Mirror, Repository

ROUNDS_MISSED = 1.5
"""After so many intervals without a look at the branch nobody was at work with these books: they may be a backup's."""
MOST_TRIED = 50
"""So many commits that unknown runs brought are planned with."""
LOOK_AGAIN = timedelta(minutes=1)
"""So often a branch, or repository, that was deleted at the source is looked for. Nothing is exported or removed for
that; one that is there again goes on by itself."""


@contextmanager
def _gone_is_noted(export: Export, what: Gone) -> Iterator[None]:
    """Ask the source for `what`; that it is not there is written down, and raised."""
    try:
        yield
    except NotFound as error:
        Export.objects.filter(pk=export.pk).update(
            gone=what.value, gone_since=Coalesce(F("gone_since"), Now()), gone_looked_at=Now(), look_error=str(error)
        )
        export.refresh_from_db(fields=["gone", "gone_since", "gone_looked_at", "look_error"])
        raise


_NOT_GONE = {"gone": "", "gone_since": None, "gone_looked_at": None}
"""The columns once it is seen."""


def rests_as_gone(export: Export) -> bool:
    """Whether it was seen to be gone so lately that nobody asks again."""
    looked = export.gone_looked_at
    return bool(export.gone) and looked is not None and clock.now() - looked < LOOK_AGAIN


def gone_outcome(export: Export) -> str:
    """What a round comes to."""
    return f"{Gone(export.gone)} deleted at source: delete this export, or export another branch"


def head_of(export: Export) -> str:
    """The commit that the branch points to now, noted. NotFound when branch or repository are gone, Conflict when the
    repository is not the one that was configured, or the place is somebody else's by now."""
    lakefs = clients.lakefs(export.region)
    with _gone_is_noted(export, Gone.REPOSITORY):
        repository = lakefs.get_repository(export.repository)
    check_same(export, repository)
    require_apart(export)
    _forget_other_store(export)
    with _gone_is_noted(export, Gone.BRANCH):
        head = lakefs.get_branch(export.repository, export.branch).commit_id
    _note_unknown_runs(export, head)
    seen = _NOT_GONE | {"head": head, "head_at": clock.now(), "look_error": ""}
    Export.objects.filter(pk=export.pk).update(**seen)
    export.head, export.gone = head, ""
    return head


def check_same(export: Export, repository: RepositoryInfo) -> None:
    """Raises Conflict for a repository that was deleted and made anew under the old name."""
    pinned = (export.creation_date, export.storage_namespace)
    if (repository.creation_date, repository.storage_namespace) != pinned:
        raise Conflict(
            f"the repository '{export.repository}' in {export.region} is not the one that was configured",
            hint="Delete this export and configure it again",
        )


def require_apart(export: Export, run: ExportRun | None = None) -> None:
    """Raises Conflict where files of a run, or its states, would come to lie among somebody else's, or hold them: a
    region's store may have been moved since its places were given, so it is asked before anything is written. `run`:
    the one that goes on, which keeps its places whatever is configured since; None: the next one."""
    its = run or export
    for uri, files in ((its.path, True), (its.status_path, False)):
        place = region_settings.export_place(export.region, uri)
        for other, whose in _others(export, uri, files=files) if uri else ():
            if place.overlaps(other):
                raise Conflict(
                    f"{place} and {other}, {whose}, overlap in the store configured now",
                    hint="Nothing is written. Configure the previous store again, or export to another path",
                )


def require_same_store(run: ExportRun) -> None:
    """Raises Conflict where the place of a run that goes on is in another store than when it began: what was
    brought before is not there."""
    now = _store_of(run.export, run.path)
    if None not in (run.store, now) and run.store != now:
        raise Conflict(
            f"the store of {run.path} has changed from {run.store} to {now} since this run began",
            hint="Repair the export: every file is then compared with what is there",
        )


def _forget_other_store(export: Export) -> None:
    """What was brought to a store says nothing of another one, in which the place is looked for by now."""
    now = _store_of(export, export.path_at_success) if export.path_at_success else None
    if None not in (export.store_at_success, now) and export.store_at_success != now:
        at_other = Export.objects.filter(pk=export.pk, store_at_success=export.store_at_success)
        at_other.update(path_at_success="")
        place = export.path_at_success
        verifications.outdate_all(export, place, f"{place} is now in another store")
        export.path_at_success = ""


def require_newest(run: ExportRun) -> None:
    """Raises Conflict where later runs than this one have written to its place: the database came back from a backup,
    and what is brought by now would lie among what they have brought."""
    export = run.export
    if not _may_be_older(export):
        return
    if later := status_files.told_since(export, run.started_at):
        _note_told(export, later)
        raise Conflict(
            f"later runs have written to {run.path}: the database was restored from an older backup and lacks them",
            hint="Repair the export: what they wrote is then compared with the commit",
        )


def _note_unknown_runs(export: Export, head: str) -> None:
    """What may have been brought since the last moment that the books know of, by runs that they don't know."""
    if not _may_be_older(export):
        return
    last = export.runs.order_by("-pk").first()
    told = status_files.told_since(export, last.started_at if last else export.created_at)
    if told is None:
        _note_line(export, head)
    elif set(told) - {export.last_success_ref}:
        _note_told(export, told)


def _note_line(export: Export, head: str) -> None:
    """Without states that tell it, what was brought is what a continuous export's branch has got since; where that
    can't be told every file is compared."""
    base = export.last_success_ref
    if not export.continuous or head == base or export.path_at_success != export.path:
        return
    line = line_after(export, head, base)
    if line is None or not line.whole:
        _note_tried(export, [base], path_at_success="")
    else:
        _note_tried(export, [commit.id for commit in reversed(line.commits)])


def _may_be_older(export: Export) -> bool:
    """Whether nobody was at work with these books for a while: a database that was restored begins so."""
    longest = ROUNDS_MISSED * max(config.current().commit_sensor.process_branches_duration, state_machine.LOOK_IN_A_RUN)
    return export.head_at is not None and clock.now() - export.head_at > longest


def _note_told(export: Export, commits: Sequence[str]) -> None:
    """What a verification of before has found says nothing of this place any more."""
    verifications.outdate_all(export, export.path, f"runs that the database has no record of wrote to {export.path}")
    _note_tried(export, commits)


def _note_tried(export: Export, commits: Sequence[str], **values: Any) -> None:
    """The place may hold something of these. More than can be planned with: then every file is compared."""
    with transaction.atomic():
        now = Export.objects.held(export.pk)
        tried = state_machine.note_attempt(now.standing(), *commits)
        if len(tried) > MOST_TRIED:
            tried, values = (now.last_success_ref, *tried[1 - MOST_TRIED :]), {"path_at_success": ""}
        values = {**leave_for(now), **values, "attempted": [ref for ref in tried if ref], "attempted_path": now.path}
        Export.objects.filter(pk=now.pk).update(**values)
    for name, value in values.items():
        setattr(export, name, value)


def _store_of(export: Export, path: str) -> str | None:
    return region_settings.export_place(export.region, path).store


def _others(export: Export, uri: str, *, files: bool) -> Iterator[tuple[Place, str]]:
    """What an address of the export may overlap: only what is in a bucket of the same name can. Exports may share a
    status path, but no `files` may lie there."""
    bucket = f"s3://{split_uri(uri)[0]}"
    yield region_settings.place(export.region, export.storage_namespace), "the repository's own storage namespace"
    for model, whose in (
        (Mirror, "the namespace of a mirror"),
        (Repository, "the storage namespace of a repository that is mirrored"),
    ):
        found = model.objects.order_by().filter(storage_namespace__startswith=bucket)
        for region, namespace in found.values_list("region", "storage_namespace"):
            yield region_settings.place(region, namespace), whose
    exports = Export.objects.exclude(pk=export.pk).order_by()
    for region, path in exports.filter(path__startswith=bucket).values_list("region", "path"):
        yield region_settings.export_place(region, path), "the path of another export"
    telling = exports.filter(status_path__startswith=bucket) if files else exports.none()
    for region, path in telling.values_list("region", "status_path"):
        yield region_settings.export_place(region, path), "the status path of another export"


def start(export: Export, head: str, *, asked_by: str = "") -> ExportRun:
    """Begin to export a commit; of several who try at once one wins, others get Conflict; NotFound for an export that
    was deleted. Inside of a transaction."""
    now = Export.objects.held(export.pk)
    standing = now.standing()
    state_machine.check_start(standing, head)
    basis = state_machine.basis(standing)
    return begin(now, head, base=basis.base, attempted=basis.attempted, asked_by=asked_by, actions_anew=_anew(now))


def _anew(export: Export) -> bool:
    """Whether what is below `_lakefs_actions/` may lie at the place otherwise than runs of these settings leave it."""
    last = export.runs.filter(outcome=State.SUCCESS).order_by("-pk").values_list("pk", flat=True).first() or 0
    otherwise = export.runs.filter(~Q(actions=export.actions) | Q(actions_anew=True, pk__gt=last), pk__gte=last)
    differs = export.actions != export.actions_at_success
    return differs or bool(export.left.get(export.path)) or otherwise.exists()


def begin(now: Export, head: str, *, base: str, attempted: Sequence[str], asked_by: str, **more: Any) -> ExportRun:
    """A run for a commit, whatever is exported already. `more`: further columns of it. Inside of a transaction that
    holds the export's row."""
    standing = now.standing()
    place = region_settings.export_place(now.region, now.path)
    former = marked_places.note(place, now.patterns, known=_marked_by(now))
    Export.objects.filter(pk=now.pk).update(
        state=State.IN_PROGRESS,
        error="",
        wanted=False,
        wanted_ref="",
        current_ref=head,
        attempted=list(state_machine.note_attempt(standing, head)),
        attempted_path=now.path,
        **leave_for(now),
    )
    run = ExportRun.objects.create(
        export=now,
        ref=head,
        base=base,
        attempted=list(attempted),
        path=now.path,
        store=place.store,
        status_path=now.status_path,
        patterns=now.patterns,
        former=former,
        asked_by=asked_by,
        started_at=clock.now(),
        **{"actions": now.actions, **more},
    )
    duties.wake("export", -now.pk)
    verifications.outdate(now, f"the export of {head[:8]} began")
    return run


def _marked_by(export: Export) -> list[str]:
    """Expressions by which the export itself may have marked directories of its place: also where the store is found at
    another address by now, under which nothing is written down."""
    last = export.runs.filter(path=export.path).order_by("-pk").first()
    marked = [*last.patterns, *last.former] if last else []
    return [*export.marked.get(export.path, ()), *(pattern for pattern in marked if pattern != marked_places.EVERY)]


@transaction.atomic
def succeed(run: ExportRun) -> None:
    """The destination holds the commit, whole: that is the base of what comes."""
    now = clock.now()
    export = Export.objects.select_for_update().get(pk=run.export_id)
    ExportRun.objects.filter(pk=run.pk).update(
        ended_at=now, outcome=State.SUCCESS, phase=ExportRun.Phase.DONE, error=""
    )
    Export.objects.filter(pk=run.export_id).update(
        state=State.SUCCESS,
        error="",
        last_success_ref=run.ref,
        path_at_success=run.path,
        store_at_success=run.store,
        actions_at_success=run.actions,
        succeeded_at=now,
        attempted=[],
        attempted_path="",
        left=left_with(export.left, export.path_at_success, [export.last_success_ref], at=run.path),
    )
    run.units.all().delete()
    if run.repairs_id and export.path == run.path and not export.deleting:
        verifications.begin(run.export, asked_by=run.asked_by)


@transaction.atomic
def fail(run: ExportRun, error: str) -> None:
    """It waits for somebody who repairs what is wrong; what it wrote is known, so nothing of it is lost or left."""
    ExportRun.objects.filter(pk=run.pk).update(ended_at=clock.now(), outcome=State.FAILED, error=error)
    Export.objects.filter(pk=run.export_id).update(state=State.FAILED, error=error)
    run.units.all().delete()
