"""What is said of exports: the state in words with its reason, how far behind, what comes next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Exists, Max, OuterRef, Q, QuerySet, Subquery

from core.exporting.explain import Drift, ExportFacts, Gone, RunFacts, Told, Unverified, tell
from core.exporting.state_machine import LOOK_IN_A_RUN, is_exported
from core.exporting.state_machine import State as ExportState
from core.installations.outages import Outage, Service
from core.mirroring.states import State, Tone
from core.text.phrases import count
from deployment import config
from exports.models import Export, ExportRun, ExportVerification
from exports.services.exports import KIND, subject_of
from installations import contact
from jobs.models import Duty

_ANSWERED = (ExportVerification.Outcome.EQUAL, ExportVerification.Outcome.DRIFTED)


@dataclass(frozen=True, slots=True)
class Behind:
    """How far a destination is behind its branch. `commits` None: by how many nobody knows, but behind; `since` when
    the first of them was made."""

    commits: int | None
    more: bool = False
    since: datetime | None = None

    @property
    def words(self) -> str:
        """In words: "up to date", "2 commits", "more than 1,000 commits", "some commits"."""
        if self.commits is None:
            return "some commits"
        text = count(self.commits, "commit")
        return f"more than {text}" if self.more else text if self.commits else "nothing"


@dataclass(frozen=True, slots=True)
class ExportSummary:
    """An export with its last run, and what is said of it."""

    export: Export
    run: ExportRun | None
    told: Told
    as_of: datetime
    retrying: str = ""
    due_at: datetime | None = None
    """When its duty is looked at next."""
    seen: bool = True
    """Whether its branch was looked at lately."""
    unverified: Unverified | None = None
    """The last verification, if it could not be finished."""

    @property
    def active(self) -> bool:
        """Whether something is going on that somebody may watch."""
        return self.run is not None and self.run.ended_at is None and not self.export.paused

    @property
    def moving(self) -> bool:
        """Whether its page will soon say something else: a run goes on, or is about to begin."""
        soon = self.told.state in (State.NEW, State.SYNCING, State.RETRYING) and not self.told.action
        return self.active or (soon and not self.export.paused)

    @property
    def runs_now(self) -> bool:
        """Whether somebody's asking for a run is what helps."""
        return self.told.action == "run"

    @property
    def verifies_now(self) -> bool:
        """Whether comparing the destination once more is what helps."""
        return self.told.action == "verify"

    @property
    def behind(self) -> Behind | None:
        """None before the branch was looked at, and before a first success: all of it is to come then. Nor is it known
        to be not behind while the branch is not seen."""
        behind = behind_of(self.export)
        return behind if self.seen or behind != Behind(0) else None

    @property
    def waiting(self) -> str:
        """Before a first success: how many commits landed after the one that was tried, in words; "" if unknown."""
        export = self.export
        counted = export.behind_of == f"{export.head}:{export.current_ref}" and export.behind_commits is not None
        if export.last_success_ref or not counted:
            return ""
        number = count(export.behind_commits, "commit")
        return f"more than {number}" if export.behind_more else number

    @property
    def lag(self) -> float | None:
        """Seconds since the first commit was made that has not been exported; None: unknown."""
        behind = self.behind
        if behind is None:
            return None
        if behind.since is None:
            return 0.0 if behind.commits == 0 else None
        return max(0.0, (self.as_of - behind.since).total_seconds())

    @property
    def needs_somebody(self) -> bool:
        """Whether nothing goes on before somebody acts, a pause lasts for longer than was said, or nobody knows whether
        the destination is as it should be though somebody asked."""
        return self.told.state.tone is Tone.BAD or self.paused_too_long or self.unverified is not None

    @property
    def paused_too_long(self) -> bool:
        """Whether it is paused for longer than was said."""
        pause = self.export.pause
        return pause is not None and pause.is_overdue(self.as_of)


def behind_of(export: Export) -> Behind | None:
    """As it was counted for these two commits; see exports/engine/commits_behind.py. The count says nothing of a place
    that does not hold the last success, or not any more."""
    if not export.head or not export.last_success_ref:
        return None
    if is_exported(export.standing(), export.head):
        return Behind(0)
    counted = export.behind_of == f"{export.head}:{export.last_success_ref}"
    comparable = export.path_at_success == export.path and export.head != export.last_success_ref
    if not counted or not comparable:
        return Behind(None)
    return Behind(export.behind_commits, export.behind_more, export.behind_since)


def proof_of(export: Export) -> ExportVerification | None:
    """The last verification of the place of now that came to an answer."""
    return export.verifications.filter(path=export.path, outcome__in=_ANSWERED).first()


def drifting(exports: Sequence[Export] | QuerySet[Export]) -> QuerySet[ExportVerification]:
    """The last verification of each export's place of now that tells anything, where it found files of its own missing
    or different, and no run has repaired that."""
    of_place = ExportVerification.objects.filter(export=OuterRef("export"), path=OuterRef("export__path"))
    last = of_place.telling().order_by("-pk").values("pk")[:1]
    rows = ExportVerification.objects.filter(Q(missing__gt=0) | Q(different__gt=0), export__in=exports)
    repaired = ExportRun.objects.filter(repairs=OuterRef("pk"), outcome=ExportState.SUCCESS)
    return rows.filter(~Exists(repaired), pk=Subquery(last)).order_by()


def _drifts(exports: Sequence[Export]) -> dict[int, Drift]:
    rows = drifting(exports)
    names = ("export_id", "ref", "missing", "different", "ended_at")
    return {key: Drift(ref, missing, different, at) for key, ref, missing, different, at in rows.values_list(*names)}


def unverified(exports: Sequence[Export] | QuerySet[Export]) -> QuerySet[ExportVerification]:
    """The last verification of each export's place of now that was not broken off by a run, where it could not be
    finished."""
    outcomes = ExportVerification.Outcome
    of_place = ExportVerification.objects.filter(export=OuterRef("export"), path=OuterRef("export__path"))
    last = of_place.exclude(ended_at=None).exclude(outcome=outcomes.OUTDATED).order_by("-pk").values("pk")[:1]
    return ExportVerification.objects.filter(outcome=outcomes.FAILED, export__in=exports, pk=Subquery(last)).order_by()


def _unverified(exports: Sequence[Export]) -> dict[int, Unverified]:
    rows = unverified(exports).values_list("export_id", "ref", "error", "ended_at")
    return {key: Unverified(ref, error, at) for key, ref, error, at in rows}


def export_statuses(exports: Sequence[Export], now: datetime) -> list[ExportSummary]:
    """All in six queries, those that need somebody first."""
    keys, outages = [export.pk for export in exports], _lakefs_outages(now)
    last = ExportRun.objects.filter(export__in=keys).order_by().values("export").annotate(last=Max("pk"))
    runs = {run.export_id: run for run in ExportRun.objects.filter(pk__in=[row["last"] for row in last])}
    duties = {-duty.subject: duty for duty in Duty.objects.filter(kind=KIND, subject__in=map(subject_of, exports))}
    drifts, untold = _drifts(exports), _unverified(exports)
    readings = [
        _reading(
            export,
            runs.get(export.pk),
            duties.get(export.pk),
            now,
            drift=drifts.get(export.pk),
            unverified=untold.get(export.pk),
            outage=outages.get(export.region),
        )
        for export in exports
    ]
    return sorted(readings, key=lambda reading: (-reading.told.state.severity, str(reading.export)))


def _lakefs_outages(now: datetime) -> dict[str, Outage]:
    """By region."""
    return {outage.region: outage for outage in contact.outages(now) if outage.service is Service.LAKEFS}


def unseen(exports: QuerySet[Export], now: datetime) -> QuerySet[Export]:
    """Those of whose branch nobody has seen lately where it is, and that are neither paused nor failed."""
    stale = Q(head_at__lt=now - _stale_after()) & ~Q(last_success_ref="")
    at_rest = exports.filter(paused=False, gone="").exclude(state__in=(*_RUNNING, ExportState.FAILED))
    return at_rest.filter(~Q(look_error="") | stale | Q(region__in=_lakefs_outages(now)))


_RUNNING = (ExportState.IN_PROGRESS, ExportState.REPAIRED)


def _reading(
    export: Export,
    run: ExportRun | None,
    duty: Duty | None,
    now: datetime,
    *,
    drift: Drift | None,
    unverified: Unverified | None,
    outage: Outage | None,
) -> ExportSummary:
    retrying = duty.outcome if duty and duty.failures else ""
    stale_since = export.head_at if export.head_at and now - export.head_at > _stale_after() else None
    facts = ExportFacts(
        branch=export.branch,
        standing=export.standing(),
        head=export.head,
        error=export.error,
        look_error=export.look_error,
        run=run and _facts(run),
        succeeded_at=export.succeeded_at,
        retrying=retrying,
        outage=outage,
        stale_since=stale_since,
        gone=Gone(export.gone) if export.gone else None,
        gone_since=export.gone_since,
        drift=drift,
        pause=export.pause,
        unverified=unverified,
    )
    seen = bool(export.head) and not export.look_error and stale_since is None and outage is None
    return ExportSummary(export, run, tell(facts, now), now, retrying, duty and duty.due_at, seen, unverified)


def _stale_after() -> timedelta:
    """What is older than three looks says nothing about now, as of mirrors."""
    return 3 * max(config.current().commit_sensor.process_branches_duration, LOOK_IN_A_RUN)


def _facts(run: ExportRun) -> RunFacts:
    return RunFacts(
        ref=run.ref,
        phase=run.phase,
        started_at=run.started_at,
        ended_at=run.ended_at,
        base=run.base,
        to_copy=run.to_copy,
        to_delete=run.to_delete,
        through=run.copied + run.skipped + run.deleted,
        failed=run.failed,
        repairs=bool(run.repairs_id),
    )
